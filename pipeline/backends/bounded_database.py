"""A database that gives up waiting: for processes that must answer somebody in time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pipeline.backends.sql_state.transaction import SqlDatabase, Transaction
from pipeline.errors import BackendUnavailable

T = TypeVar("T")


class BoundedDatabase:
    """Passes work on. A server that hangs without closing its connections sends nothing, so only we can see it."""

    def __init__(self, database: SqlDatabase, limit_s: float) -> None:
        """Take the longest that one transaction may take."""
        self._database, self._limit_s = database, limit_s
        self._running: set[asyncio.Future[Any]] = set()

    def write(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run `work`; after the limit, whether it was done is not known."""
        return self._bounded(self._database.write(work))

    def read(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run `work` over one snapshot."""
        return self._bounded(self._database.read(work))

    def look(self, work: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run `work`, each statement by itself."""
        return self._bounded(self._database.look(work))

    async def _bounded(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            done, _ = await asyncio.wait({task}, timeout=self._limit_s)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        task.cancel()  # not awaited: giving up on a server that hangs takes as long as the driver likes
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise BackendUnavailable(f"PostgreSQL: no answer within {self._limit_s:g} s; check the server")
