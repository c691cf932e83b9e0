"""Background loops of one process: they sleep until woken, back off while a store is down, and survive bugs."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from pipeline.errors import BackendUnavailable

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
"""Back-off in seconds while a store or model does not answer."""
LOOK_AGAIN = 0.05
"""Seconds after which a loop looks again while there is work that others must finish first."""
LOOK_SELDOM = 30.0
"""The same when nothing is known to be left: what failed a while ago may work by now."""


class Loops:
    """Runs steps again and again; a step returns False when it found nothing to do."""

    def __init__(self, name: str, busy: Callable[[], bool]) -> None:
        """Take a name for the log, and whether there is work that no loop can take right now."""
        self._name, self._busy = name, busy
        self._awake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure = ""
        """What a store or model said when it last did not answer; empty while all is well."""

    def wake(self) -> None:
        """Let the loops look for work."""
        self._awake.set()

    def spawn(self, work: Awaitable[None]) -> None:
        """Run something beside the loops until it ends or `stop` is called."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def start(self, step: Callable[[], Awaitable[bool]]) -> None:
        """Run a step for ever."""
        self.spawn(self._forever(step))

    async def stop(self) -> None:
        """Cancel everything and wait for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def note_failure(self, error: BaseException, pause: float) -> None:
        """Remember and log that a store or model does not answer."""
        self.failure = str(error)
        log.warning("indexing_paused", loops=self._name, reason=str(error), seconds=pause)

    async def _forever(self, step: Callable[[], Awaitable[bool]]) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                found = await step()
                pause = FIRST_PAUSE
            except BackendUnavailable as error:
                self.note_failure(error, pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            except Exception:
                log.exception("step_failed", loops=self._name)  # a bug; the other documents go on
                await asyncio.sleep(pause)
                continue
            if not found:
                self._awake.clear()
                # Not wait_for: until Python 3.12 it loses a cancellation that arrives with the wake-up,
                # and `stop` would wait for ever.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN if self._busy() else LOOK_SELDOM):
                        await self._awake.wait()
