"""What the stack tells of itself: lag by stage from Kafka, what is unfinished from the state store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pipeline.change_times import ChangeTimes, seconds_between
from pipeline.clock import Clock
from pipeline.errors import BackendUnavailable
from pipeline.health import Probe, StoreHealth
from pipeline.ports.runtime import Watermarks
from pipeline.ports.signals import Health, Signals, StageLag
from pipeline.ports.state import State
from pipeline.recent import Recent
from pipeline.stack.lag import Lag, LagReader, Stage
from schemas.topics import Topics, analyze_group, apply_group, generation_topics, reconcile_group

STALE_S = 1.0
"""How old a look at Kafka may be while the next one is under way. An old watermark is low, never wrong."""
COUNT_PAGES, COUNT_PAGE = 10, 1_000
WATCH_S = 1.0
STALLED_S = 60.0
"""A message that waits so long at a stage that has workers is worth a warning."""
WORKER_COMMAND = "python -m pipeline.agents run"


class StackStages:
    """Names the stages of a generation, with their groups and topics."""

    def __init__(self, topics: Topics, prefix: str, partitions: int, sources: tuple[str, ...] = ()) -> None:
        self._topics, self._prefix, self._partitions, self._sources = topics, prefix, partitions, sources

    def reconcile(self) -> Stage:
        """Return the stage that all generations share."""
        source = (self._topics.events.name, self._topics.events_bulk.name, *self._sources)
        return Stage("reconcile", reconcile_group(self._prefix), source)

    def of(self, generation: str) -> list[Stage]:
        """Return them in the order of the journey."""
        topics, prefix = self._topics, self._prefix
        analyzed = generation_topics(prefix, generation, self._partitions)
        return [
            self.reconcile(),
            Stage("analyze", analyze_group(prefix, generation), (topics.records.name, topics.records_bulk.name)),
            Stage("apply", apply_group(prefix, generation), tuple(topic.name for topic in analyzed.all())),
        ]


class StackSignals:
    """Reads lag and counts, each at most twice a second however many ask."""

    def __init__(
        self,
        state: State,
        live: Callable[[], Awaitable[str]],
        reader: LagReader,
        stages: StackStages,
        probes: Mapping[str, Probe],
        clock: Clock,
    ) -> None:
        self._state, self._live, self._reader, self._stages, self._clock = state, live, reader, stages, clock
        self.times = ChangeTimes()
        self._lag = Recent(self.look, stale_s=STALE_S, share=1)
        # Apart from the others: events are taken while the state store is down, and before there is a generation.
        self._unread = Recent(lambda: reader.read([stages.reconcile()]), stale_s=STALE_S, share=1)
        self._pending = Recent(self._count_pending, stale_s=STALE_S)
        self._counts = Recent(self._count, stale_s=STALE_S)
        self._stores = StoreHealth({"postgres": state.generations, "kafka": reader.probe, **probes}, clock)

    async def watch(self) -> None:
        """Look at the stores for ever, so that it is known since when one is away, and who asks need not find out."""
        while True:
            await self._stores.states()
            await asyncio.sleep(WATCH_S)

    def why_away(self, store: str) -> str:
        """Return why a store is known to be away; empty when it is not."""
        return self._stores.why_away(store)

    async def close(self) -> None:
        """Stop reading."""
        for recent in (self._lag, self._unread, self._pending, self._counts):
            await recent.close()
        await self._reader.close()

    async def look(self) -> Lag:
        """Look at the live generation's stages now. Raises BackendUnavailable."""
        return await self._reader.read(self._stages.of(await self._live()))

    async def reconciling(self) -> int:
        """Return how many events wait to be reconciled, as far as it is known: whoever sends some will see."""
        try:
            return (await self._unread.get()).of("reconcile")
        except BackendUnavailable:
            return self._unread.last.of("reconcile") if self._unread.last else 0

    async def watermarks(self) -> Watermarks:
        """Return how far each store is; while Kafka does not answer, how far it was when it last did."""
        lag = await self._known_lag()
        pending, unread = await self._pending.get(), lag.of("reconcile") if lag else 0
        everywhere = lag.oldest("reconcile", "analyze", "apply") if lag else ""
        return Watermarks(
            records=lag.oldest("reconcile") if lag else "",
            chunks=everywhere,
            text=everywhere,
            graph=everywhere,
            pending=pending[0] + unread,
            pending_text=pending[1] + unread,
            relinks=(await self._counts.get())["relinks"],
        )

    async def _known_lag(self) -> Lag | None:
        try:
            return await self._lag.get()
        except BackendUnavailable:
            return self._lag.last

    async def _count(self) -> dict[str, int]:
        return await self._state.counts(await self._live())

    async def _count_pending(self) -> tuple[int, int]:
        """Count documents not yet full, and those never applied; beyond ten thousand it is that many at least."""
        generation, after = await self._live(), ""
        documents = fresh = 0
        for _ in range(COUNT_PAGES):
            page = await self._state.pending(generation, after=after, limit=COUNT_PAGE)
            documents, fresh = documents + len(page), fresh + sum(one.fresh for one in page)
            if len(page) < COUNT_PAGE:
                break
            after = page[-1].document
        return documents, fresh

    async def signals(self, outdated: list[str]) -> Signals:
        """Return what freshness pages and metrics show; `outdated` are parts built by other versions."""
        lag = await self._known_lag()
        stages = lag.stages if lag else []
        warnings = self._idle(stages) + self._stalled(stages)
        if lag is None:
            warnings.append("Kafka does not answer: lag and watermarks are not known")
        if outdated:
            warnings.append(f"the live indexes were built with another {', '.join(outdated)}: rebuild them")
        counts = await self._counts.get()
        return Signals(
            times=self.times.figures(),
            stages=stages,
            dead_letters=counts["dead_letters"],
            oldest_unapplied=min((stage.oldest for stage in stages if stage.oldest), default=""),
            warnings=warnings,
            outdated=outdated,
            repaired={index: counts.get(f"repaired.{index}", 0) for index in ("chunks", "graph")},
        )

    def _idle(self, stages: list[StageLag]) -> list[str]:
        return [
            f"no worker serves the stage {stage.stage} (group {stage.group}): start one with `{WORKER_COMMAND}`"
            for stage in stages
            if not stage.members
        ]

    def _stalled(self, stages: list[StageLag]) -> list[str]:
        now = self._clock()
        return [
            f"the stage {stage.stage} has {stage.lag} messages, the oldest from {stage.oldest}: more workers, or look "
            "at what its workers log"
            for stage in stages
            if stage.members and stage.oldest and seconds_between(stage.oldest, now) > STALLED_S
        ]

    async def health(self) -> Health:
        """Say which stores answer, and whether any stage stands still."""
        stores = await self._stores.states()
        lag = await self._looked() if all(store.up for store in stores) else None
        return Health(stores=stores, paused=self._idle(lag.stages) if lag else [])

    async def _looked(self) -> Lag | None:
        try:
            return await self._known_lag()
        except BackendUnavailable:
            return None
