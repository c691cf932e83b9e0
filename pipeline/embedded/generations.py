"""The generations that one process keeps up: the live one, one that is built, and those that were live before."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import structlog

from pipeline.change_times import ChangeTimes
from pipeline.clock import Clock
from pipeline.decoding import admit
from pipeline.errors import InvalidEvent, NotPossible
from pipeline.generations import Opener, OpenGeneration
from pipeline.mapping import Mappings
from pipeline.ports.change_log import ChangeLog
from pipeline.ports.generations import Generation, Indexes, Rebuild, ReplayPlan
from pipeline.ports.state import Pending, State
from pipeline.replay.plan import start_of
from pipeline.replay.supply import Look
from schemas.record import Record

log = structlog.get_logger(__name__)

DROP_WAIT_S = 30.0
"""Requests over an old generation may still take so long."""
TOPIC = "log"
"""What the change log is called where a start names topic, partition and offset."""
PAGE = 500


class EmbeddedGenerations:
    """Implements `pipeline.replay.supply.Supply` for one process. All of its generations follow live changes."""

    def __init__(
        self,
        state: State,
        opener: Opener,
        change_log: ChangeLog,
        mappings: Mappings,
        versions: dict[str, str],
        max_event: int,
        clock: Clock,
    ) -> None:
        self._state, self._opener, self._log, self._mappings = state, opener, change_log, mappings
        self._versions, self._max_event, self._clock = versions, max_event, clock
        self._open: dict[str, OpenGeneration] = {}
        self._live = ""
        self._opening = asyncio.Lock()
        self.on_progress: Callable[[], None] = lambda: None
        self.times = ChangeTimes()

    @property
    def live(self) -> OpenGeneration:
        """The live generation."""
        if not self._live:
            raise RuntimeError("the runtime is not open")
        return self._open[self._live]

    # ---------------------------------------------------------------- life

    async def open(self) -> int:
        """Open all generations, make the first one if there is none; return how many documents were left behind."""
        for left in await self._state.generations():
            if left.state == "pruning" or (left.state == "building" and not await self._can_go_on(left)):
                log.warning("rebuild_dropped", generation=left.name, reason="cut off, or of other versions")
                await self._opener(left.name, False).drop(0.0)
                await self._state.drop_generation(left.name)
        live = await self._live_row()
        self._live = live.name
        self._open[live.name] = opened = self._opener(live.name, True)
        opened.builder.becomes_live(self.on_progress, self.times)
        behind = await self._take_up(opened)
        for generation in await self._state.generations():
            await self.begin(generation.name)
        return behind

    async def _can_go_on(self, generation: Generation) -> bool:
        return generation.versions == self._versions and await self._state.rebuild(generation.name) is not None

    async def _live_row(self) -> Generation:
        known = await self._state.generations()
        for generation in known:
            if generation.state == "live":
                return generation
        first = Generation(name=await self._state.next_generation(), created_at=self._clock(), versions=self._versions)
        await self._state.create_generation(first)
        await self._state.promote(first.name, self._clock())
        return first

    async def _take_up(self, generation: OpenGeneration, wanted: Callable[[Pending], bool] = lambda _: True) -> int:
        """Start the loops over all that the state store says is behind, as far as wanted."""
        await generation.builder.open()
        behind = await self._add_pending(generation, wanted)
        generation.builder.start()
        return behind

    async def _add_pending(self, generation: OpenGeneration, wanted: Callable[[Pending], bool] = lambda _: True) -> int:
        after, number = "", 0
        while found := await self._state.pending(generation.name, after=after):
            after, page = found[-1].document, [pending for pending in found if wanted(pending)]
            records = await self._state.records([pending.document for pending in page])
            generation.builder.add_behind(page, records, await self._arrival(list(records.values())))
            number += len(page)
        return number

    async def _arrival(self, records: Sequence[Record]) -> str:
        """Return when the oldest of these records' events arrived, as far as the log knows."""
        offsets = [int(o[4:].split(".")[0]) for r in records for o in r.origins if o.startswith("log:")]
        if not offsets:
            return self._clock()
        logged = await self._log.read(min(offsets) - 1, 1)
        return logged[0].received_at if logged else self._clock()

    async def close(self) -> None:
        """Stop the loops, close the indexes."""
        for generation in self._open.values():
            await generation.close()

    async def advanced(self, records: Sequence[Record], arrived: str) -> None:
        """Schedule records that have advanced, in every generation."""
        for generation in list(self._open.values()) if records else ():
            await generation.builder.add(records, arrived)

    # ---------------------------------------------------------------- supply

    async def create(self, name: str, plan: ReplayPlan) -> dict[str, int]:
        """Refuse starts: the records are all here."""
        if not start_of(plan.start).everything:
            raise NotPossible(
                "a new generation is built from the records here, which are all there: leave --from away; with --into "
                "live it says which documents are done again"
            )
        return {}

    async def begin(self, name: str) -> None:
        """Open a generation and keep it up."""
        async with self._opening:
            if name in self._open:
                return
            rebuild = await self._state.rebuild(name)
            generation = self._opener(name, False)
            self._open[name] = generation  # before the look at what is pending: no change falls between the two
            await self._take_up(generation, _wanted(rebuild))

    async def read(self, name: str, targets: dict[str, int]) -> bool:
        """Say whether the backlog is done; live changes go on beside it."""
        return not self._open[name].builder.schedule.unfinished("text", "full", "relink")

    async def again(self, name: str, documents: Sequence[str]) -> None:
        """Schedule documents."""
        await self._open[name].builder.add_again(documents)

    async def since(self, start: str) -> AsyncIterator[str]:
        """Yield the documents of logged events."""
        asked = start_of(start)
        after = await self._offset(asked.offsets) - 1 if asked.offsets else 0
        while page := await self._log.read(after, PAGE):
            after = page[-1].offset
            for logged in page:
                if logged.received_at >= asked.time:
                    events = admit(logged.raw, self._mappings, self._max_event)
                    for event in () if isinstance(events, InvalidEvent) else events:
                        if event.op != "truncate":
                            yield event.document

    async def _offset(self, offsets: dict[tuple[str, int], int]) -> int:
        unknown = [f"{topic}:{partition}" for topic, partition in offsets if (topic, partition) != (TOPIC, 0)]
        end = await self._log.end()
        if unknown:
            raise NotPossible(f"there is no {unknown[0]} here: the log is {TOPIC}:0, with the offsets 1 to {end}")
        offset = offsets[TOPIC, 0]
        if not 1 <= offset <= end + 1:
            raise NotPossible(f"{TOPIC}:0:{offset} is not in the log, which has the offsets 1 to {end}")
        return offset

    async def look(self, name: str) -> Look:
        """Nothing to tell: there are neither groups nor workers."""
        return Look()

    async def promoted(self, name: str, replaced: str) -> None:
        """Let it announce from now on, and the other one follow quietly."""
        new = self._open[name]
        new.builder.becomes_live(self.on_progress, self.times)
        self._live = name
        if replaced in self._open:
            self._open[replaced].builder.retires()
        self.on_progress()
        # What only the new generation had applied by now has not been announced yet.
        await self._add_pending(new)

    async def readers_gone(self, name: str, left_live: str) -> None:
        """Wait for those who pinned it."""
        if name in self._open:
            await self._open[name].unpinned(DROP_WAIT_S)

    async def remove(self, name: str) -> None:
        """Stop its loops and remove its files."""
        generation = self._open.pop(name, None) or self._opener(name, False)
        await generation.drop(0.0)

    def indexes(self, name: str) -> AbstractAsyncContextManager[Indexes]:
        """Pin one."""
        return self._open[name].pinned()


def _wanted(rebuild: Rebuild | None) -> Callable[[Pending], bool]:
    """A partial generation takes its collections, and changes of what it has."""
    if rebuild is None or not rebuild.plan.collections:
        return lambda _: True
    prefixes = tuple(f"{name}/" for name in rebuild.plan.collections)
    return lambda pending: not pending.fresh or pending.document.startswith(prefixes)
