"""Reading one's own write by the source's own position: a PostgreSQL transaction's LSN, without any token.

1. *Sent*: some event of the source at or beyond the position was read. Debezium sends transactions in the order of
   their commits, so everything that was committed before it is in the source's topics by then.
2. *Reconciled*: whatever is in these topics at that moment is in the records.
3. *Settled*: the source's documents that are behind their records at that moment have caught up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pipeline.decoding.positions import ordinal_of
from pipeline.errors import InvalidEvent, InvalidQuery, NotFresh
from pipeline.ports.state import Pending, State
from pipeline.sources.control import Places
from pipeline.sources.epochs import SourceEpochs
from schemas.position import reached

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.2
PAGE = 1000
Live = Callable[[], Awaitable[str]]


class SourceFreshness:
    """Waits over the state store; `places` tells how far the topics of a source are filled."""

    def __init__(self, state: State, live: Live, places: Places) -> None:
        self._state, self._live, self._places = state, live, places

    async def wait(self, source: str, position: str, timeout_s: float) -> None:
        """Return when what the source had committed up to its position can be found.

        Raises InvalidQuery (pointer /min_freshness) for a position that is none or a source without positions,
        NotFresh after `timeout_s` with how far it came, BackendUnavailable.
        """
        clock = _Patience(timeout_s)
        await self._sent(source, position, clock)
        await self._reconciled(source, await self._places(source), clock)
        generation = ""
        while generation != (now := await self._live()):  # another may have become live meanwhile
            generation = now
            await self._settled(source, generation, clock)

    async def _sent(self, source: str, position: str, clock: "_Patience") -> None:
        try:
            ordinal = ordinal_of(position, "lsn")
        except InvalidEvent as error:
            raise InvalidQuery(f"{position[:60]!r} is no position: {error.reason}", pointer="/min_freshness") from error
        epoch = SourceEpochs(await self._state.epochs()).newest().get(source, 0)
        wanted = reached(epoch, ordinal)
        while True:
            heads = await self._state.source_heads(source)
            highest = max(heads, key=lambda head: head.head, default=None)
            if highest is not None and highest.head >= wanted:
                return
            come = f"has come to {highest.version} of {highest.at}" if highest else "never sent a position"
            await clock.pause(
                f"the source {source} {come}, {position} was asked for; check that its connector runs, with heartbeats "
                "and heartbeat.action.query, and that its topics are in SHINSEN_SOURCE_TOPICS"
            )

    async def _reconciled(self, source: str, ends: dict[str, int], clock: "_Patience") -> None:
        while True:
            done = await self._state.reconciled(list(ends))
            left = {place: end for place, end in ends.items() if done.get(place, 0) < end}
            if not left:
                return
            place = min(left)
            await clock.pause(
                f"{len(left)} partitions of the source {source} are not read up to what was there, {place} for one "
                f"({done.get(place, 0)} of {left[place]}); `shinsen status` shows the stage `reconcile`"
            )

    async def _settled(self, source: str, generation: str, clock: "_Patience") -> None:
        left = await self._pending(source, generation)
        while left:
            left = await self._unsettled(generation, left)
            if left:
                one = left[0]
                await clock.pause(
                    f"{len(left)} documents of the source {source} are not indexed yet, {one.document} at "
                    f"{one.position} for one; `shinsen status` shows what is pending"
                )

    async def _pending(self, source: str, generation: str) -> list[Pending]:
        """Return what is behind now, of this source's documents."""
        prefix = f"{source}/"
        found: list[Pending] = []
        after = prefix
        while True:
            page = await self._state.pending(generation, after=after, limit=PAGE)
            own = [one for one in page if one.document.startswith(prefix)]
            found += own
            if len(own) < PAGE:
                return found
            after = own[-1].document

    async def _unsettled(self, generation: str, waiting: Sequence[Pending]) -> list[Pending]:
        """Return those that are still behind; one whose version is a dead letter is not waited for."""
        documents = [one.document for one in waiting]
        settled = await self._state.settled(generation, documents)
        behind = [one for one in waiting if settled.get(one.document, "") < one.position]
        dead = await self._state.dead_positions([one.document for one in behind]) if behind else {}
        return [one for one in behind if one.position not in {d.position for d in dead.get(one.document, [])}]


class _Patience:
    """Pauses that grow, up to a time; then says what it was waiting for."""

    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout_s, self._end = timeout_s, self._loop.time() + timeout_s
        self._next = FIRST_PAUSE

    async def pause(self, waiting_for: str) -> None:
        """Sleep a little. Raises NotFresh when the time is over."""
        left = self._end - self._loop.time()
        if left <= 0:
            raise NotFresh(f"not reached within {self._timeout_s:g} s: {waiting_for}")
        await asyncio.sleep(min(self._next, left))
        self._next = min(1.5 * self._next, LONGEST_PAUSE)
