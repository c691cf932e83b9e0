"""The sweep: what somebody left half done is asked for again, out of what the state store says."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
import structlog

from pipeline.agents.verifying import Verification
from pipeline.apply import Applier
from pipeline.errors import BackendUnavailable
from pipeline.ports.state import State
from pipeline.writer_marks import LEASE_S

log = structlog.get_logger(__name__)

EVERY_S = 3.0
WHOLE_EVERY_S = 600.0
"""Between looks at all records, for documents that are behind although no mark says so; and the longest pause before
a document is asked for again."""
PAGE = 1_000


class _Left(msgspec.Struct):
    """A document that is left over at each look since a time."""

    since: float
    """When it was first seen, or last asked for."""
    asked: int = 0


class Sweep:
    """Run by the owner of the first partition of a generation's analyzed documents.

    What is left over may just be on its way. Where nothing else is, two looks tell; under load it must be there for
    longer, and if it is on its way after all, to ask for it does no harm. Each time that it was asked for, the
    next wait is twice as long, so that a backlog is not filled with repetitions.
    """

    def __init__(
        self,
        state: State,
        applier: Applier,
        verification: Verification,
        send: Callable[[Iterable[str]], Awaitable[None]],
        lag: Callable[[], Awaitable[int]],
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`send` asks for documents to be applied again; `lag` says how many messages are on their way."""
        self._state, self._applier, self._send, self._lag, self._seconds = state, applier, send, lag, seconds
        self._verification = verification
        self._left: dict[str, _Left] = {}
        self._unlooked: dict[int, float] = {}
        self._next = seconds() + EVERY_S
        self._whole = self._compared = 0.0

    async def sweep(self) -> int:
        """Do what is due; return how many documents were asked for. Raises BackendUnavailable."""
        now = self._seconds()
        if now < self._next:
            return 0
        self._next = now + EVERY_S
        quiet = not await self._lag()
        asked = await self._ask(await self._look_up(now))
        found = await self._state.leftovers(
            self._applier.generation, older_s=LEASE_S, announces=self._applier.announces, limit=PAGE
        )
        patience = EVERY_S if quiet else LEASE_S
        asked += await self._ask(self._overdue(found, now, patience))
        if quiet and now >= self._whole:
            asked += await self._behind()
            self._whole = now + WHOLE_EVERY_S
        if now >= self._compared + (LEASE_S if found else patience):
            await self._compare(now)
        return asked

    async def _ask(self, documents: Sequence[str]) -> int:
        if documents:
            log.info("left_over", generation=self._applier.generation, documents=len(documents), first=documents[0])
            await self._send(documents)
        return len(documents)

    async def _look_up(self, now: float) -> list[str]:
        """Look up the holders of changed names for a writer that ended before it did; return them."""
        left = await self._state.unlooked(self._applier.generation)
        self._unlooked = {change.number: self._unlooked.get(change.number, now) for change in left}
        return await self._applier.look_up([one for one in left if now - self._unlooked[one.number] >= LEASE_S])

    def _overdue(self, found: Sequence[str], now: float, patience: float) -> list[str]:
        self._left = {document: self._left.get(document) or _Left(now) for document in found}
        overdue: list[str] = []
        for document, left in self._left.items():
            if now - left.since >= min(patience * 2**left.asked, WHOLE_EVERY_S):
                overdue.append(document)
                left.since, left.asked = now, left.asked + 1
        return overdue

    async def _is(self, *states: str) -> bool:
        generation = self._applier.generation
        return any(one.name == generation and one.state in states for one in await self._state.generations())

    async def _compare(self, now: float) -> None:
        """Compare a page of manifests with the indexes, unless these are being built or removed; under load not so
        often."""
        self._compared = now
        if await self._is("building", "pruning"):
            return
        try:
            await self._verification.look()
        except BackendUnavailable as error:  # for all else that the sweep does no index is needed
            log.warning("not_verified", generation=self._applier.generation, reason=str(error))
            self._compared += LEASE_S

    async def _behind(self) -> int:
        """Ask for what is behind its record, unless a rebuild is under way: its plan says what belongs into it."""
        generation, after, asked = self._applier.generation, "", 0
        if await self._is("building"):
            return 0
        while page := await self._state.pending(generation, after=after, limit=PAGE):
            asked += await self._ask([one.document for one in page])
            after = page[-1].document
        return asked
