"""The embedded shell: the whole pipeline in one process (plus model workers), over one data folder."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog

from pipeline.change_times import seconds_between
from pipeline.clock import Clock
from pipeline.data_folder import DataFolder
from pipeline.dead_letters import LETTER_HEADER, RETRY_HEADER
from pipeline.digest import digest
from pipeline.embedded_signals import EmbeddedSignals
from pipeline.errors import InvalidQuery, NotFresh
from pipeline.generations import Opener, OpenGeneration, next_name
from pipeline.intake import Intake
from pipeline.mapping import Mappings
from pipeline.ports.change_log import ChangeLog
from pipeline.ports.models import Analyzer, Embedder
from pipeline.ports.runtime import Indexes, Submission, Watermarks, progress_of
from pipeline.ports.signals import ChangeHistogram, Health, Signals
from pipeline.ports.state import Generation, State
from pipeline.settling import Settling
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome, OutcomeName, TokenPart
from schemas.record import Record

log = structlog.get_logger(__name__)

DROP_WAIT = 30.0
"""Seconds that readers of an old generation may still take."""
QUIET_WAIT = 600.0
"""Seconds that a digest waits for work under way."""


class EmbeddedRuntime:
    """Implements `pipeline.ports.runtime.Runtime`. Made by wiring; `open` before use, `close` at the end."""

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
        max_event: int,
        max_backlog: int,
        clock: Clock,
        folder: DataFolder,
    ) -> None:
        self.folder = folder
        """Locked by this process; tells others where it can be reached."""
        self.state, self.mappings, self.analyzer, self.embedder = state, mappings, analyzer, embedder
        self._log, self._clock, self._versions, self._opener = change_log, clock, versions, opener
        self._live: OpenGeneration | None = None
        self._building: OpenGeneration | None = None
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
        self._signals = EmbeddedSignals(state, self.intake, lambda: self._generation, clock)
        self._reader: asyncio.Task[None] | None = None
        self._rebuilding = asyncio.Lock()
        self.outdated: list[str] = []
        """What the live generation was built with in another version; a replay mends it."""
        self.recovered = 0
        """Documents that the last start had to take up again."""

    async def _live_name(self) -> str:
        return self._generation.name

    @property
    def _generation(self) -> OpenGeneration:
        if self._live is None:
            raise RuntimeError("the runtime is not open")
        return self._live

    # ---------------------------------------------------------------- life

    async def open(self) -> None:
        """Open the live generation, take up what the last run left, start the loops."""
        known = await self.state.generations()
        live = next((g.name for g in known if g.state == "live"), "")
        for left in (g.name for g in known if g.state != "live"):
            await self._opener(left, False).drop(0.0)  # a rebuild that was cut off; it starts anew
            await self.state.drop_generation(left)
        if not live:
            live = next_name([])
            await self.state.create_generation(self._new_generation(live))
            await self.state.promote(live)
        self._warn_outdated(await self.state.generations())
        self._live = self._opener(live, True)
        self._live.builder.becomes_live(self._settling.progressed, self._signals.times)
        self.recovered = await self._start(self._live)
        await self.intake.open()
        self._reader = asyncio.create_task(self.intake.run())

    def _warn_outdated(self, known: Sequence[Generation]) -> None:
        """Notice that the indexes were built with other mappings, dictionaries or models than run now."""
        built = next(g.versions for g in known if g.state == "live")
        self.outdated = sorted(name for name, version in self._versions.items() if built.get(name) != version)
        if self.outdated:
            log.warning("indexes_outdated", changed=self.outdated, advice="run `shinsen replay` to rebuild them")

    async def _start(self, generation: OpenGeneration) -> int:
        await generation.builder.open()
        behind = await generation.builder.add_pending(self._arrival)
        generation.builder.start()
        return behind

    async def _arrival(self, records: Sequence[Record]) -> str:
        """Return when the oldest of these records' events arrived, as far as the log knows."""
        offsets = [int(o[4:].split(".")[0]) for r in records for o in r.origins if o.startswith("log:")]
        if not offsets:
            return self._clock()
        logged = await self._log.read(min(offsets) - 1, 1)
        return logged[0].received_at if logged else self._clock()

    def _new_generation(self, name: str) -> Generation:
        return Generation(name=name, created_at=self._clock(), versions=self._versions)

    async def close(self) -> None:
        """Stop taking events, stop the loops, close the indexes. What was accepted is in the log."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        for generation in (self._building, self._live):
            if generation is not None:
                await generation.close()

    # ---------------------------------------------------------------- events

    async def submit(self, events: Sequence[RawEvent]) -> list[Submission]:
        """Take events at the door."""
        return await self.intake.submit(events)

    async def _reconciled(self, records: Sequence[Record], arrived: str) -> None:
        now = self._clock()
        for record in records:
            self._signals.times.observe(record.document, ("records",), seconds_between(arrived, now))
        await self._advanced(records, arrived)

    async def _advanced(self, records: Sequence[Record], arrived: str) -> None:
        for generation in (self._live, self._building):
            if generation is not None and records:
                await generation.builder.add(records, arrived)

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
        done: dict[str, str] = {}
        for name in letters:
            letter = await self.state.dead_letter(name)
            if letter is None:
                done[name] = "unknown: no dead letter has this id; `shinsen dlq list` shows them"
            elif letter.resolved:
                done[name] = "already resolved"
            elif letter.stage in ("map", "apply"):
                done[name] = await self._retry_record(letter)
            else:
                done[name] = await self._retry_raw(letter)
        return done

    async def _retry_record(self, letter: DeadLetter) -> str:
        await self.state.resolve([letter.id], self._generation.name)
        record = (await self.state.records([letter.document])).get(letter.document)
        if record is None or record.position != letter.position:
            ended = Outcome(
                event=letter.event, document=letter.document, position=letter.position, outcome="superseded"
            )
            await self.state.announce([ended])
            return "superseded: a newer version of the document stands"
        await self._advanced([record], self._clock())
        return "queued"

    async def _retry_raw(self, letter: DeadLetter) -> str:
        headers = letter.headers | {RETRY_HEADER: letter.event, LETTER_HEADER: letter.id}
        submission = (await self.intake.submit([RawEvent(value=letter.payload, headers=headers)]))[0]
        if submission.status == "rejected":
            return f"rejected again ({submission.code}): {submission.reason}"
        return "queued"

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
        return await self._signals.signals(self.outdated)

    def histograms(self) -> list[ChangeHistogram]:
        """Return change-to-searchable times."""
        return self._signals.times.histograms()

    async def health(self) -> Health:
        """Say whether the stores answer."""
        return await self._signals.health()

    async def status(self) -> dict[str, Any]:
        """Return what people and probes want to see."""
        live = self._generation
        generations = await self.state.generations()
        return {
            "profile": "embedded",
            "generation": live.name,
            "generations": [{"name": g.name, "state": g.state, "versions": g.versions} for g in generations],
            "events": {"logged": self.intake.end, "reconciled": self.intake.reconciled},
            "counts": await self.state.counts(live.name),
            "chunks": await live.chunks.count(),
            **progress_of(self._signals.watermarks()),
            "models": {"analyzer": self.analyzer.version, "embedder": self.embedder.model or None},
            "paused": self._signals.paused(),
            "outdated": self.outdated,
            "rebuilding": self._building.name if self._building is not None else None,
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
        """Build a new generation from the records beside the live one, switch, drop the old one."""
        async with self._rebuilding:
            old = self._generation
            name = next_name([g.name for g in await self.state.generations()])
            await self.state.create_generation(self._new_generation(name))
            new = self._building = self._opener(name, False)
            try:
                documents = await self._start(new)
                await self._caught_up(new)
                await self.state.promote(name)
                new.builder.becomes_live(self._settling.progressed, self._signals.times)
                self._live, self.outdated = new, []
            except BaseException:
                await new.drop(0.0)
                await self.state.drop_generation(name)
                raise
            finally:
                self._building = None
            self._settling.progressed()
            await old.builder.stop()
            # What only the new generation had applied by now has not been announced yet.
            await new.builder.add_pending(self._arrival)
            await old.drop(DROP_WAIT)
            await self.state.drop_generation(old.name)
            log.info("generation_promoted", generation=name, documents=documents)
            return {"generation": name, "replaced": old.name, "documents": documents}

    async def _caught_up(self, new: OpenGeneration) -> None:
        while len(new.builder.schedule) or self.intake.end > self.intake.reconciled:  # noqa: ASYNC110 - two counters
            await asyncio.sleep(0.01)
