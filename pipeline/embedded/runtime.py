"""The embedded shell: the whole pipeline in one process (plus model workers), over one data folder."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import structlog

from pipeline.change_times import seconds_between
from pipeline.clock import Clock
from pipeline.dictionary_change import DictionaryChange, outdated_parts
from pipeline.digest import digest
from pipeline.embedded.data_folder import DataFolder
from pipeline.embedded.generations import EmbeddedGenerations
from pipeline.embedded.intake import Intake
from pipeline.embedded.signals import EmbeddedSignals
from pipeline.errors import InvalidQuery, NotFresh
from pipeline.generations import Opener, OpenGeneration
from pipeline.mapping import Mappings
from pipeline.ports.change_log import ChangeLog
from pipeline.ports.further_list import FurtherList
from pipeline.ports.models import Analyzer, Embedder
from pipeline.ports.reranker import Reranker
from pipeline.ports.runtime import Indexes, Submission, Watermarks, progress_of
from pipeline.ports.signals import ChangeHistogram, Health, Signals
from pipeline.ports.state import State
from pipeline.replay.progress import brief
from pipeline.replay.replays import StateReplays
from pipeline.retrying import retry
from pipeline.settling import Settling
from pipeline.sources.control import SourceControl
from schemas.change_event import RawEvent
from schemas.outcome import OutcomeName, TokenPart
from schemas.ranking_model import RankingModel
from schemas.record import Record

log = structlog.get_logger(__name__)

QUIET_WAIT = 600.0
"""Seconds that a digest waits for work under way."""


class EmbeddedRuntime:
    """Implements `pipeline.ports.runtime.Runtime`. Made by wiring; `open` before use, `close` at the end."""

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
        change_log: ChangeLog,
        mappings: Mappings,
        analyzer: Analyzer,
        embedder: Embedder,
        opener: Opener,
        versions: dict[str, str],
        dictionary: DictionaryChange,
        max_event: int,
        max_backlog: int,
        clock: Clock,
        folder: DataFolder,
    ) -> None:
        self.folder = folder  # locked by this process; tells others where it can be reached
        self.state, self.mappings, self.analyzer, self.embedder = state, mappings, analyzer, embedder
        self._clock, self._versions, self._dictionary = clock, versions, dictionary
        self._generations = EmbeddedGenerations(state, opener, change_log, mappings, versions, max_event, clock)
        self.replays = StateReplays(state, self._generations, lambda: versions, clock)
        self._settling = Settling(state, self._live_name)
        self.intake = Intake(
            change_log,
            state,
            mappings,
            max_event=max_event,
            max_backlog=max_backlog,
            clock=clock,
            advanced=self._reconciled,
            progressed=self._settling.progressed,
        )
        self.sources = SourceControl(state, self.intake.places, self.submit, clock, self.intake.read_epochs)
        self._signals = EmbeddedSignals(state, self.intake, lambda: self._generation, clock)
        self._generations.on_progress, self._generations.times = self._settling.progressed, self._signals.times
        self._reader: asyncio.Task[None] | None = None
        self.outdated: list[str] = []
        """What the live generation was built with in another version; a replay mends it."""
        self.recovered = 0
        """Documents that the last start had to take up again."""

    async def _live_name(self) -> str:
        return self._generation.name

    @property
    def _generation(self) -> OpenGeneration:
        return self._generations.live

    # ---------------------------------------------------------------- life

    async def open(self) -> None:
        """Open the generations, take up what the last run left, start the loops."""
        self.recovered = await self._generations.open()
        await self._hear_dictionary()
        await self._look_outdated()
        if self.outdated:
            log.warning("indexes_outdated", changed=self.outdated, advice="run `shinsen replay` to rebuild them")
        await self.intake.open()
        self._reader = asyncio.create_task(self.intake.run())
        await self.replays.go_on()

    async def _hear_dictionary(self) -> None:
        """Do documents again that hold a word by which the user's dictionary has changed."""
        row = next(g for g in await self.state.generations() if g.state == "live")
        chunks = self._generation.chunks
        marked = await self._dictionary.catch_up(self.state, row, chunks, self._versions)
        await self._generations.again(row.name, marked)

    async def _look_outdated(self) -> None:
        """Notice that the indexes were built with other mappings, dictionaries or models than run now."""
        built = next(g.versions for g in await self.state.generations() if g.state == "live")
        self.outdated = outdated_parts(built, self._versions)

    async def close(self) -> None:
        """Stop taking events, stop the loops, close the indexes. What was accepted is in the log."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        await self.replays.close()
        await self._generations.close()

    # ---------------------------------------------------------------- events

    async def submit(self, events: Sequence[RawEvent]) -> list[Submission]:
        """Take events at the door."""
        return await self.intake.submit(events)

    async def _reconciled(self, records: Sequence[Record], arrived: str) -> None:
        now = self._clock()
        for record in records:
            self._signals.times.observe(record.document, ("records",), seconds_between(arrived, now))
        await self._generations.advanced(records, arrived)

    async def wait_settled(self, parts: Sequence[TokenPart], timeout_s: float) -> None:
        """Wait for a token."""
        await self._settling.settled(parts, timeout_s)

    async def wait_source(self, source: str, position: str, timeout_s: float) -> None:
        """Refuse: events arrive here only by POST /v1/events, whose token says what to wait for."""
        raise InvalidQuery(
            f"waiting for the position {position} of {source} itself needs the stack; here, pass the token that "
            "POST /v1/events gave",
            pointer="/min_freshness",
        )

    async def wait_outcomes(self, events: Sequence[str], timeout_s: float) -> dict[str, OutcomeName]:
        """Wait for outcomes."""
        return await self._settling.outcomes(events, timeout_s)

    async def retry(self, letters: Sequence[str]) -> dict[str, str]:
        """Try dead letters again."""
        return await retry(self.state, self._live_name, letters, self._work_again, self.intake.submit)

    async def _work_again(self, generation: str, record: Record) -> None:
        await self._generations.advanced([record], self._clock())

    # ---------------------------------------------------------------- reading

    def live(self) -> AbstractAsyncContextManager[Indexes]:
        """Pin the live generation."""
        return self._generation.pinned()

    def hurry(self, documents: Sequence[str]) -> None:
        """Move staged documents to the front."""
        self._generation.builder.schedule.hurry(documents)

    async def watermarks(self) -> Watermarks:
        """Return how far each store is."""
        return self._signals.watermarks()

    async def signals(self) -> Signals:
        """Return what freshness pages and metrics show."""
        await self._look_outdated()
        found = await self._signals.signals(self.outdated)
        return msgspec.structs.replace(found, warnings=[*found.warnings, *await self.sources.warnings()])

    def histograms(self) -> list[ChangeHistogram]:
        """Return change-to-searchable times."""
        return self._signals.times.histograms()

    async def health(self) -> Health:
        """Say whether the stores answer."""
        return await self._signals.health()

    async def status(self) -> dict[str, Any]:
        """Return what people and probes want to see."""
        live = self._generation
        await self._look_outdated()
        generations = await self.replays.statuses()
        return {
            "profile": "embedded",
            "generation": live.name,
            "generations": brief(generations),
            "events": {"logged": self.intake.end, "reconciled": self.intake.reconciled},
            "counts": await self.state.counts(live.name),
            "chunks": await live.chunks.count(),
            **progress_of(self._signals.watermarks()),
            "models": {"analyzer": self.analyzer.version, "embedder": self.embedder.model or None},
            "paused": self._signals.paused(),
            "warnings": await self.sources.warnings(),
            "outdated": self.outdated,
            "rebuilding": next((g.name for g in generations if g.state == "building"), None),
        }

    async def quiet(self, timeout_s: float) -> None:
        """Return when nothing is under way. Raises NotFresh after `timeout_s`."""
        end = asyncio.get_running_loop().time() + timeout_s
        while self.intake.end > self.intake.reconciled or len(self._generation.builder.schedule):  # two counters
            if asyncio.get_running_loop().time() > end:
                raise NotFresh(f"still indexing after {timeout_s:g} s; `shinsen status` shows what is pending")
            await asyncio.sleep(0.02)

    async def digest(self) -> dict[str, str]:
        """Read every store back."""
        await self.quiet(QUIET_WAIT)
        async with self.live() as indexes:
            return await digest(self.state, indexes.generation, indexes.chunks, indexes.graph)

    # ---------------------------------------------------------------- replay

    async def replay(self) -> dict[str, Any]:
        """Build a new generation from the records beside the live one, switch, drop the old ones."""
        replaced = await self.replays.replace()
        await self._look_outdated()
        return replaced
