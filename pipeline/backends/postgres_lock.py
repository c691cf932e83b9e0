"""An exclusive right between processes: a PostgreSQL advisory lock, held on a connection of its own."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import errors

from pipeline.backends.postgres_connections import NO_ADDRESS
from pipeline.errors import BackendUnavailable, InvalidConfiguration

LEASE_S, WAIT_S = 30.0, 90.0
"""How long a holder may be silent; how long one waits at all."""
LOOKS = 6
"""How often within a lease a waiter looks after the holder, and (half as often) the holder gives a sign of life."""
KEY = "hashtextextended(%(name)s, 0)"
# A holder's connection does nothing but hold, so its last change of state is its last sign of life.
END_SILENT = f"""
    SELECT pg_terminate_backend(a.pid)
    FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.classid::bigint = ({KEY} >> 32) & 4294967295 AND l.objid::bigint = {KEY} & 4294967295
        AND a.pid <> pg_backend_pid() AND a.state <> 'active'
        AND a.state_change < clock_timestamp() - make_interval(secs => %(lease)s)"""  # noqa: S608

Confirm = Callable[[], Awaitable[None]]
"""Raises BackendUnavailable when the right is lost: ask before each thing that needs it."""


class PostgresLock:
    """One holder of a name at a time, over all processes. The server frees it when a holder's connection ends.

    A holder that gives no sign of life for `lease_s` (its process is stopped, its machine is gone without a word)
    loses it: whoever waits ends its connection. It finds out at its next `Confirm`, and at the end of `held`.
    """

    def __init__(self, url: str, name: str, *, lease_s: float = LEASE_S, wait_s: float = WAIT_S) -> None:
        self._url, self._name, self._lease_s, self._wait_s = url, name, lease_s, wait_s
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._mine = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Confirm]:
        """Hold the lock. Raises BackendUnavailable when it cannot be had in time, or was lost while it was held."""
        async with self._mine:
            holding = await self._take()
            done = asyncio.Event()
            beating = asyncio.create_task(self._beat(holding, done))

            async def confirm() -> None:
                await self._ask(holding, "SELECT 1")

            try:
                yield confirm
            finally:
                done.set()
                await self._free(holding, beating)

    async def _free(self, holding: psycopg.AsyncConnection[Any], beating: asyncio.Task[None]) -> None:
        try:
            await beating
            freed = await self._ask(holding, f"SELECT pg_advisory_unlock({KEY})")
        except BaseException:
            await self.close()  # its end frees the lock, whatever happened
            raise
        if not freed:
            await self.close()
            raise self._unavailable("it was lost while it was held; again")

    async def _take(self) -> psycopg.AsyncConnection[Any]:
        until = time.monotonic() + self._wait_s
        while True:
            connection = await self._connected()
            try:
                await connection.execute(f"SELECT pg_advisory_lock({KEY})", {"name": self._name})
            except errors.LockNotAvailable as error:
                if time.monotonic() > until:
                    raise self._unavailable(f"others held it for {self._wait_s:g} s; again later") from error
                await self._ask(connection, END_SILENT)
            except psycopg.Error as error:
                await self.close()
                raise self._unavailable(f"{str(error).strip()}; check the server") from error
            except BaseException:  # cancelled: the lock may have come at that very moment
                await self.close()
                raise
            else:
                return connection

    async def _beat(self, holding: psycopg.AsyncConnection[Any], done: asyncio.Event) -> None:
        while not done.is_set():
            try:
                await asyncio.wait_for(done.wait(), 2 * self._lease_s / LOOKS)
            except TimeoutError:
                try:
                    await holding.execute("SELECT 1")
                except psycopg.Error:
                    return  # lost: `confirm` and the end of `held` say so to the one whom it concerns

    async def _ask(self, connection: psycopg.AsyncConnection[Any], sql: str) -> Any:
        try:
            values = {"name": self._name, "lease": self._lease_s}
            row = await (await connection.execute(sql, values)).fetchone()
        except psycopg.Error as error:
            await self.close()
            raise self._unavailable(f"{str(error).strip()}; check the server") from error
        return row[0] if row else None

    async def _connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            looks_ms = max(1, round(self._lease_s / LOOKS * 1000))
            try:
                self._connection = await psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=5, options=f"-c lock_timeout={looks_ms}"
                )
            except psycopg.ProgrammingError:
                raise InvalidConfiguration(NO_ADDRESS) from None
            except psycopg.Error as error:
                raise self._unavailable(f"{str(error).strip()}; check the server") from error
        return self._connection

    def _unavailable(self, why: str) -> BackendUnavailable:
        return BackendUnavailable(f"PostgreSQL: lock {self._name}: {why}")

    async def close(self) -> None:
        """Let go of the connection; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
