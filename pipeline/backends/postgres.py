"""One PostgreSQL database: the synchronous SQL of `sql_state` over an asynchronous driver, without threads."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from pipeline.backends.greenlet_waiting import run_waiting, wait
from pipeline.backends.postgres_connections import Connection, Connections
from pipeline.backends.postgres_migrations.known import HEAD, VERSION_TABLE, refuse_newer
from pipeline.backends.sql_state.transaction import Row, Transaction
from pipeline.errors import BackendUnavailable, InvalidConfiguration, InvalidEvent

T = TypeVar("T")

CONFLICTS = 10
"""Tries of one transaction that others made fail (deadlock, serialization) before the caller must wait."""
CONFLICT_PAUSE = 0.02
LIMITS = "54"
"""Class of the states of SQL that say that a limit of the server was passed, such as the size of an index row."""
# A reader sees one snapshot; a writer sees what was committed while it waited for a lock.
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"


@lru_cache(maxsize=512)
def _placeholders(sql: str) -> str:
    """Turn `?` into `$1`, `$2`. No statement of ours holds a question mark in a literal."""
    first, *others = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, start=1))


class _PostgresTransaction:
    row_lock, share_lock = " FOR UPDATE", " FOR SHARE"
    now = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return wait(self._execute(sql, parameters))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        wait(self._executemany(sql, rows))

    async def _execute(self, sql: str, parameters: Sequence[Any]) -> list[Row]:
        cursor = await self._connection.execute(_placeholders(sql), parameters)
        return await cursor.fetchall() if cursor.description is not None else []

    async def _executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        given = list(rows)
        if len(given) == 1:  # `executemany` makes a pipeline, which costs more than the statement
            await self._connection.execute(_placeholders(sql), given[0])
        elif given:
            await self._connection.cursor().executemany(_placeholders(sql), given)


class PostgresDatabase:
    """The SqlDatabase of `sql_state`. Connects again when it lost the server.

    Opening does nothing; the first use brings the tables up to date. Every call raises BackendUnavailable while the
    server does not answer, InvalidConfiguration when a newer Shinsen made the tables or the role has no right to, and
    InvalidEvent (`store_refused`) for values that the server never takes: NUL in a text, too much for an index.
    """

    def __init__(self, url: str, *, connections: int = 4) -> None:
        """Take the address and how many transactions may run at a time."""
        self._url = url
        self._connections = Connections(url, connections)
        self._preparing = asyncio.Lock()
        self._ready = False

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a read-write transaction; again when another transaction was in its way."""
        return await self._run(work, BEGIN_WRITE)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` over one snapshot."""
        return await self._run(work, BEGIN_READ)

    async def look(self, work: Callable[[Transaction], T]) -> T:
        """Run `work`, each statement by itself: no transaction is begun and none ended."""
        return await self._run(work, "")

    async def close(self) -> None:
        """Finish what runs and close the connections; idempotent."""
        await self._connections.close()

    async def _run(self, work: Callable[[Transaction], T], begin: str) -> T:
        try:
            for attempt in range(1, CONFLICTS):
                try:
                    return await self._once(work, begin)
                except (errors.SerializationFailure, errors.DeadlockDetected):
                    await asyncio.sleep(CONFLICT_PAUSE * attempt)
            return await self._once(work, begin)
        except errors.InsufficientPrivilege as error:
            raise InvalidConfiguration(
                f"PostgreSQL: {_said(error)}; grant it to the role of SHINSEN_POSTGRES"
            ) from error
        except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, psycopg.DataError) as error:
            if isinstance(error, psycopg.DataError) or (error.sqlstate or "").startswith(LIMITS):
                reason = f"PostgreSQL never takes this: {_said(error)}; shorten it, or leave such characters out"
                raise InvalidEvent("store_refused", reason) from error
            raise BackendUnavailable(f"PostgreSQL: {_said(error)}; check the server and its address") from error

    async def _once(self, work: Callable[[Transaction], T], begin: str) -> T:
        async with self._connections.one() as connection:
            if not self._ready:
                await self._prepare(connection)
            if not begin:
                return await run_waiting(lambda: work(_PostgresTransaction(connection)))
            await connection.execute(begin)
            try:
                result = await run_waiting(lambda: work(_PostgresTransaction(connection)))
            except BaseException:
                await _roll_back(connection)
                raise
            await connection.execute("COMMIT")
            return result

    async def _prepare(self, connection: Connection) -> None:
        async with self._preparing:
            if self._ready:
                return
            try:
                rows = await (await connection.execute(f"SELECT version_num FROM {VERSION_TABLE}")).fetchall()  # noqa: S608
            except errors.UndefinedTable:
                rows = []
            standing = rows[0][0] if rows else ""
            refuse_newer(standing)
            if standing != HEAD:
                from pipeline.backends.postgres_migrations.upgrade import migrate  # half a second, seldom needed

                try:
                    await asyncio.to_thread(migrate, self._url)
                except (errors.ProgrammingError, errors.DataError, errors.IntegrityError) as error:
                    raise InvalidConfiguration(
                        f"PostgreSQL: the tables cannot be brought to revision {HEAD}: {_said(error)}; give the"
                        " role of SHINSEN_POSTGRES the right, or use an empty database"
                    ) from error
            self._ready = True


def _said(error: psycopg.Error) -> str:
    """Return the server's sentence on one line, without the statement that it quotes."""
    return " ".join((error.diag.message_primary or str(error)).split())


async def _roll_back(connection: Connection) -> None:
    """Undo a transaction whose error matters more than that of a connection that is lost with it."""
    try:
        await connection.execute("ROLLBACK")
    except psycopg.Error:
        await connection.close()
