"""Refining beside a worker's messages: in a task of its own, since models take longer than a look at what is due."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from pipeline.errors import BackendUnavailable
from pipeline.refining import Refiner

log = structlog.get_logger(__name__)


class Refining:
    """Run by the owner of the first partition of a generation's analyzed documents, like the sweep."""

    def __init__(self, refiner: Refiner, lag: Callable[[], Awaitable[int]]) -> None:
        """`lag` says how many messages are on their way: while there are any, these need the models more."""
        self._refiner, self._lag = refiner, lag
        self._task: asyncio.Task[None] | None = None

    def go_on(self) -> None:
        """Refine the next documents, unless some are being refined."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refine())

    async def stop(self) -> None:
        """Let go of what is under way; it is begun anew by whoever owns the partition."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _refine(self) -> None:
        try:
            while not await self._lag() and await self._refiner.refine():
                pass
        except BackendUnavailable as error:
            log.warning("refining_paused", reason=str(error))
        except Exception:
            log.exception("refining_failed")  # a bug; the documents go on without
