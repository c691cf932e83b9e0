"""The sweep: what somebody left half done is asked for again, out of what the state store says."""

import time
from collections.abc import Awaitable, Callable

import structlog

from pipeline.agents.applying import Applying
from pipeline.apply import LEASE_S
from pipeline.clock import Clock, earlier
from pipeline.ports.state import State

log = structlog.get_logger(__name__)

EVERY_S = 3.0
WHOLE_EVERY_S = 600.0
"""Between looks at all records, for documents that are behind although no mark says so."""
PAGE = 1_000


class Sweep:
    """Run by the owner of the first partition of a generation's analyzed documents, when nothing is under way.

    A document must be left over at two looks in a row: it may just have been on its way.
    """

    def __init__(self, state: State, applying: Applying, lag: Callable[[], Awaitable[int]], clock: Clock) -> None:
        self._state, self._applying, self._lag, self._clock = state, applying, lag, clock
        self._seen: set[str] = set()
        self._unlooked: set[int] = set()
        self._next = time.monotonic() + EVERY_S
        self._whole = 0.0

    async def sweep(self) -> int:
        """Do what is due; return how many documents were asked for. Raises BackendUnavailable."""
        now = time.monotonic()
        if now < self._next:
            return 0
        self._next = now + EVERY_S
        if await self._lag():
            self._seen, self._unlooked = set(), set()
            return 0
        generation, announces = self._applying.applier.generation, self._applying.applier.announces
        await self._look_up(generation)
        stale = earlier(self._clock(), LEASE_S)
        found = await self._state.leftovers(generation, stale=stale, announces=announces, limit=PAGE)
        again = [document for document in found if document in self._seen]
        self._seen = set(found)
        if now >= self._whole:
            again += await self._behind(generation)
            self._whole = now + WHOLE_EVERY_S
        if again:
            log.info("left_over", generation=generation, documents=len(again), first=again[0])
            await self._applying.send_references(dict.fromkeys(again))
        return len(again)

    async def _look_up(self, generation: str) -> None:
        """Look up the holders of changed names for a writer that ended before it did."""
        left = await self._state.unlooked(generation)
        overdue = [change for change in left if change.number in self._unlooked]
        self._unlooked = {change.number for change in left}
        await self._applying.applier.look_up(overdue)

    async def _behind(self, generation: str) -> list[str]:
        found: list[str] = []
        after = ""
        while page := await self._state.pending(generation, after=after, limit=PAGE):
            found += [one.document for one in page]
            after = page[-1].document
        return found
