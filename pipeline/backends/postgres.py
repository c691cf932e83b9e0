"""One PostgreSQL database behind an async face: a few threads, each with a connection of its own."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from pipeline.backends.sql_state.transaction import Row, Transaction
from pipeline.errors import BackendUnavailable, InvalidConfiguration

T = TypeVar("T")

CONFLICTS = 10
"""Tries of one transaction that others made fail (deadlock, serialization) before the caller must wait."""
CONFLICT_PAUSE = 0.02
SETTINGS = "-c lock_timeout=10000 -c statement_timeout=60000 -c idle_in_transaction_session_timeout=60000"
"""Milliseconds: a lost client, or one that hangs, must not hold the others for ever."""
TYPES = {"text": 'TEXT COLLATE "C"', "blob": "BYTEA", "integer": "BIGINT"}
"""Text compares by bytes, as the ports ask for, whatever locale the cluster was made with."""


@lru_cache(maxsize=512)
def _placeholders(sql: str) -> str:
    """Turn `?` into `%s`. No statement of ours holds a question mark in a literal."""
    return sql.replace("%", "%%").replace("?", "%s")


class _PostgresTransaction:
    row_lock, share_lock = " FOR UPDATE", " FOR SHARE"

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._cursor = connection.cursor()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        self._cursor.execute(_placeholders(sql), parameters)
        return self._cursor.fetchall() if self._cursor.description is not None else []

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._cursor.executemany(_placeholders(sql), rows)


class PostgresDatabase:
    """The SqlDatabase of `sql_state`. Makes its tables at the first use and connects again when it lost the server.

    Opening does nothing; every call raises BackendUnavailable while the server does not answer, and
    InvalidConfiguration when another version of Shinsen made the tables.
    """

    def __init__(self, url: str, statements: Sequence[str], *, name: str, version: int = 1, threads: int = 4) -> None:
        """Take the DDL of one group of tables, its name and its version."""
        self._url, self._statements, self._name, self._version = url, statements, name, version
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"postgres-{name}")
        self._own = threading.local()
        self._opened: set[psycopg.Connection[Row]] = set()
        self._guard = threading.Lock()
        self._ready = self._closed = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a read-write transaction; again when another transaction was in its way."""
        return await self._submit(work, read_only=False)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` over one snapshot."""
        return await self._submit(work, read_only=True)

    async def close(self) -> None:
        """Finish what runs and close the connections; idempotent."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown, wait=True)
        with self._guard:
            for connection in self._opened:
                connection.close()
            self._opened.clear()

    async def _submit(self, work: Callable[[Transaction], T], *, read_only: bool) -> T:
        if self._closed:
            raise BackendUnavailable("PostgreSQL: the store is closed; open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work, read_only)

    def _run(self, work: Callable[[Transaction], T], read_only: bool) -> T:
        try:
            for attempt in range(1, CONFLICTS):
                try:
                    return self._once(work, read_only)
                except (errors.SerializationFailure, errors.DeadlockDetected):
                    time.sleep(CONFLICT_PAUSE * attempt)
            return self._once(work, read_only)
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as error:
            self._drop_connection()
            raise BackendUnavailable(f"PostgreSQL: {str(error).strip()}; check the server and its address") from error

    def _once(self, work: Callable[[Transaction], T], read_only: bool) -> T:
        connection = self._connection()
        if connection.read_only != read_only:
            connection.read_only = read_only
            # A reader sees one snapshot; a writer sees what was committed while it waited for a lock.
            level = psycopg.IsolationLevel
            connection.isolation_level = level.REPEATABLE_READ if read_only else level.READ_COMMITTED
        with connection.transaction():
            return work(_PostgresTransaction(connection))

    def _connection(self) -> psycopg.Connection[Row]:
        connection: psycopg.Connection[Row] | None = getattr(self._own, "connection", None)
        if connection is not None and not connection.closed:
            return connection
        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=5, options=SETTINGS)
        with self._guard:
            self._opened.add(connection)
            self._own.connection = connection
            if not self._ready:
                self._create(connection)
                self._ready = True
        return connection

    def _drop_connection(self) -> None:
        connection: psycopg.Connection[Row] | None = getattr(self._own, "connection", None)
        self._own.connection = None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()
            with self._guard:
                self._opened.discard(connection)

    def _create(self, connection: psycopg.Connection[Row]) -> None:
        with connection.transaction():
            tx = _PostgresTransaction(connection)
            # Two starts at once: CREATE TABLE IF NOT EXISTS alone can fail on the catalogue's unique index.
            tx.execute("SELECT pg_advisory_xact_lock(hashtext('shinsen schema'))")
            tx.execute("CREATE TABLE IF NOT EXISTS schema_version (part TEXT PRIMARY KEY, version BIGINT NOT NULL)")
            rows = tx.execute("SELECT version FROM schema_version WHERE part = ?", (self._name,))
            if rows and rows[0][0] != self._version:
                raise InvalidConfiguration(
                    f"PostgreSQL: another version made the tables of {self._name} (schema {rows[0][0]}, this one reads "
                    f"{self._version}); use an empty database and replay, or install the version that made them"
                )
            if not rows:
                for statement in self._statements:
                    tx.execute(statement)
                tx.execute("INSERT INTO schema_version (part, version) VALUES (?, ?)", (self._name, self._version))
