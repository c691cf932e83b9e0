"""The stack as the API sees it: it reads the stores, hands events to Kafka, and indexes nothing itself."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from pipeline.clock import Clock
from pipeline.dictionary_change import outdated_parts
from pipeline.digest import digest
from pipeline.errors import BackendUnavailable, NotFresh
from pipeline.mapping import Mappings
from pipeline.ports.further_list import FurtherList
from pipeline.ports.models import Analyzer, Embedder
from pipeline.ports.reranker import Reranker
from pipeline.ports.runtime import Indexes, Submission, Watermarks, progress_of
from pipeline.ports.signals import ChangeHistogram, Health, Signals
from pipeline.ports.state import Generation, State
from pipeline.replay.progress import brief
from pipeline.replay.replays import StateReplays
from pipeline.retrying import retry
from pipeline.settling import Settling
from pipeline.sources.control import SourceControl
from pipeline.sources.freshness import SourceFreshness
from pipeline.stack.door import StackDoor
from pipeline.stack.generations import StackGenerations
from pipeline.stack.outcomes import OutcomeFollower
from pipeline.stack.signals import StackSignals
from pipeline.stack.sources import SourcePlaces
from schemas.change_event import RawEvent
from schemas.outcome import OutcomeName, TokenPart
from schemas.ranking_model import RankingModel
from schemas.record import Record

QUIET_WAIT = 600.0
"""Seconds that a digest waits for work under way."""
QUIET_LOOK = 0.2


class StackRuntime:
    """Implements `pipeline.ports.runtime.Runtime`; any number of processes run one. Made by wiring."""

    ranking: RankingModel = RankingModel()
    reranker: Reranker | None = None
    """The second stage of a search, which wiring sets."""
    rerank_budget_s = 1.0
    further: tuple[FurtherList, ...] = ()
    further_budget_s = 1.0

    def __init__(
        self,
        *,
        state: State,
        mappings: Mappings,
        analyzer: Analyzer,
        embedder: Embedder,
        generations: StackGenerations,
        signals: StackSignals,
        settling: Settling,
        follower: OutcomeFollower,
        door: StackDoor,
        places: SourcePlaces,
        replays: StateReplays,
        versions: dict[str, str],
        clock: Clock,
    ) -> None:
        self.state, self.mappings, self.analyzer, self.embedder = state, mappings, analyzer, embedder
        self._generations, self._signals, self._settling, self._door = generations, signals, settling, door
        self._versions, self._clock, self._follower = versions, clock, follower
        self.replays = replays
        self.sources = SourceControl(state, places.of, door.submit, clock)
        self._places, self._freshness = places, SourceFreshness(state, generations.live_name, places.of)
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Follow outcomes and watch the stores. One that is down is no error here: the requests that need it say so."""
        self._tasks = [asyncio.create_task(self._follower.run()), asyncio.create_task(self._signals.watch())]

    async def close(self) -> None:
        """Let go of everything. What was accepted is in Kafka."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.replays.close()
        await self._door.close()
        await self._places.close()
        await self._signals.close()
        await self._generations.close()

    # ---------------------------------------------------------------- events

    async def submit(self, events: Sequence[RawEvent]) -> list[Submission]:
        """Take events at the door."""
        return await self._door.submit(events)

    async def wait_settled(self, parts: Sequence[TokenPart], timeout_s: float) -> None:
        """Wait for a token."""
        await self._settling.settled(parts, timeout_s)

    async def wait_source(self, source: str, position: str, timeout_s: float) -> None:
        """Wait for a source's own position."""
        await self._freshness.wait(source, position, timeout_s)

    async def wait_outcomes(self, events: Sequence[str], timeout_s: float) -> dict[str, OutcomeName]:
        """Wait for outcomes."""
        return await self._settling.outcomes(events, timeout_s)

    async def retry(self, letters: Sequence[str]) -> dict[str, str]:
        """Try dead letters again."""
        return await retry(self.state, self._generations.live_name, letters, self._work_again, self._door.submit)

    async def _work_again(self, generation: str, record: Record) -> None:
        # The sweep would find it too, since it counts as pending now: this is for those who wait.
        await self._door.send_again(generation, [record.document])

    # ---------------------------------------------------------------- reading

    def live(self) -> AbstractAsyncContextManager[Indexes]:
        """Pin the live generation."""
        return self._generations.pinned()

    def hurry(self, documents: Sequence[str]) -> None:
        """Do nothing: workers take changes before imports already, and stage no text on its own."""

    async def watermarks(self) -> Watermarks:
        """Return how far each store is."""
        return await self._signals.watermarks()

    async def signals(self) -> Signals:
        """Return what freshness pages and metrics show."""
        found = await self._signals.signals(self._outdated(await self.state.generations()))
        return msgspec.structs.replace(found, warnings=[*found.warnings, *await self.sources.warnings()])

    def histograms(self) -> list[ChangeHistogram]:
        """Return change-to-searchable times."""
        return self._signals.times.histograms()

    async def health(self) -> Health:
        """Say whether the stores answer."""
        return await self._signals.health()

    def _outdated(self, known: Sequence[Generation]) -> list[str]:
        built = next((g.versions for g in known if g.state == "live"), self._versions)
        return outdated_parts(built, self._versions)

    async def status(self) -> dict[str, Any]:
        """Return what people and probes want to see."""
        known = await self.state.generations()
        marks, signals, health = await self.watermarks(), await self.signals(), await self.health()
        async with self.live() as indexes:
            counts, chunks = await self.state.counts(indexes.generation), await _counted(indexes)
        return {
            "profile": "stack",
            "generation": indexes.generation,
            "generations": brief(await self.replays.statuses()),
            "counts": counts,
            "chunks": chunks,
            **progress_of(marks),
            "stages": msgspec.to_builtins(signals.stages),
            "change_to_searchable": msgspec.to_builtins(signals.times),
            "stores": msgspec.to_builtins(health.stores),
            "models": {"analyzer": self.analyzer.version, "embedder": self.embedder.model or None},
            "paused": health.paused,
            "warnings": signals.warnings,
            "outdated": self._outdated(known),
        }

    async def quiet(self, timeout_s: float) -> None:
        """Return when every stage has acknowledged everything and nothing is pending. Raises NotFresh."""
        end = asyncio.get_running_loop().time() + timeout_s
        while True:
            lag = await self._signals.look()
            left = sum(stage.lag for stage in lag.stages)
            if not left and not await self.state.pending(await self._generations.live_name(), limit=1):
                return
            if asyncio.get_running_loop().time() > end:
                raise NotFresh(f"still indexing after {timeout_s:g} s; `shinsen status` shows what is pending")
            await asyncio.sleep(QUIET_LOOK)

    async def digest(self) -> dict[str, str]:
        """Read every store back."""
        await self.quiet(QUIET_WAIT)
        async with self.live() as indexes:
            return await digest(self.state, indexes.generation, indexes.chunks, indexes.graph)

    async def replay(self) -> dict[str, Any]:
        """Build a new generation beside the live one, switch, remove the old ones; the workers do the work."""
        return await self.replays.replace()


async def _counted(indexes: Indexes) -> int | None:
    """Return how many chunks there are; None while their index is away, for which there is `stores`."""
    try:
        return await indexes.chunks.count()
    except BackendUnavailable:
        return None
