"""An exclusive right between processes: a PostgreSQL advisory lock, held on a connection of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from pipeline.errors import BackendUnavailable

WAIT_MS = 30_000


class PostgresLock:
    """One holder of a name at a time, over all processes. The server frees it when a holder's connection ends."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._mine = asyncio.Lock()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Hold the lock. Raises BackendUnavailable when it cannot be had, or was lost while it was held."""
        async with self._mine:
            await self._call("SELECT pg_advisory_lock(hashtextextended(%s, 0))")
            try:
                yield
            finally:
                freed = await self._call("SELECT pg_advisory_unlock(hashtextextended(%s, 0))")
                if not freed:
                    await self.close()
                    raise BackendUnavailable(f"PostgreSQL: the lock {self._name} was lost while it was held; again")

    async def _call(self, sql: str) -> Any:
        try:
            connection = await self._connected()
            row = await (await connection.execute(sql, (self._name,))).fetchone()
        except psycopg.Error as error:
            await self.close()
            raise BackendUnavailable(
                f"PostgreSQL: lock {self._name}: {str(error).strip()}; check the server"
            ) from error
        return row[0] if row else None

    async def _connected(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                self._url, autocommit=True, connect_timeout=5, options=f"-c lock_timeout={WAIT_MS}"
            )
        return self._connection

    async def close(self) -> None:
        """Let go of the connection; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
