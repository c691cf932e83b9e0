"""Gathering: ask the sources that the route names, each within its time, and fall back when one has nothing."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from api.answering.asked import asked_words
from api.answering.sources import Ask, ask_chunks, ask_graph, ask_records, order
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from api.routing.rules import Decision
from pipeline.errors import BackendUnavailable, QueryTimeout
from pipeline.text.normalize import fold
from schemas.query import RouteStep, StepOutcome

Judge = Callable[[Sequence[Passage]], bool]
_WEAK_RECORD = 0.4


class Gathered(msgspec.Struct, kw_only=True):
    """Passages with how they were come by."""

    strategy: str
    passages: list[Passage]
    steps: list[RouteStep]
    warnings: list[str]
    rest: AnalyzedQuestion | None = None
    """The question without its identifiers and their dates, where these name documents."""


class Gatherer:
    """Runs the sources of one question."""

    def __init__(self, ask: Ask, timeout_s: float) -> None:
        """Keep what is asked."""
        self._ask, self._timeout = ask, timeout_s
        self._steps: list[RouteStep] = []
        self._warnings: list[str] = []

    async def gather(self, decision: Decision) -> Gathered:
        """Ask for the route's evidence; the texts are searched in any case, the others build on them."""
        strategy: str = decision.strategy
        found = await self._run("vector", ask_chunks(self._ask))
        rest = self._ask.reader.rest
        self._ask.reader.chunks_away = self._ask.reader.chunks_away or self._failed()
        passages = found
        if self._failed() and strategy == "vector" and self._ask.entities:
            strategy = "graph"  # without the texts' index, what the question names leads to documents
        if strategy in ("db", "all"):
            records = await self._run("db", ask_records(self._ask, found), self._weak_records)
            passages = _merged(records, found) if strategy == "all" else records
        if strategy in ("graph", "all"):
            reached = await self._run("graph", ask_graph(self._ask, found), _no_paths)
            passages = _merged(passages, reached) if strategy == "all" else reached
        if strategy in ("db", "graph") and self._steps[-1].outcome != "ok":
            self._warnings.append(f"the source {strategy} was {self._steps[-1].outcome}; the texts answer instead")
            passages, strategy = _merged(passages, found), "vector"
        return Gathered(strategy=strategy, passages=passages, steps=self._steps, warnings=self._warnings, rest=rest)

    async def _run(self, source: str, work: Awaitable[list[Passage]], weak: Judge | None = None) -> list[Passage]:
        """Run one source; note how it went."""
        started = time.perf_counter()
        passages: list[Passage] = []
        outcome: StepOutcome
        try:
            passages = await asyncio.wait_for(work, self._timeout)
            outcome = "empty" if not passages else "weak" if weak and weak(passages) else "ok"
        except (TimeoutError, QueryTimeout):
            outcome = "timeout"
            self._warnings.append(f"the source {source} did not answer within {self._timeout:g} s and was left out")
        except BackendUnavailable as error:
            outcome = "error"
            self._warnings.append(f"the source {source} could not be read and was left out: {error}")
        ms = round((time.perf_counter() - started) * 1000, 2)
        self._steps.append(RouteStep(source=source, hits=len(passages), ms=ms, outcome=outcome))
        return passages

    def _failed(self) -> bool:
        return self._steps[-1].outcome in ("error", "timeout")

    def _weak_records(self, passages: Sequence[Passage]) -> bool:
        """Say whether the records hold too little of what is asked of the entity."""
        asked = asked_words(self._ask.question, self._ask.entities)
        folded = fold(self._ask.question.text)[0]
        if not asked or any(fold(label)[0] in folded for p in passages for label in self._ask.labels(p.document)):
            return False
        held = frozenset().union(*(passage.terms for passage in passages))
        return sum(word in held for word in asked) / len(asked) < _WEAK_RECORD


def _no_paths(passages: Sequence[Passage]) -> bool:
    """Say whether the graph led nowhere."""
    return not any(passage.path for passage in passages)


def _merged(first: Sequence[Passage], second: Sequence[Passage]) -> list[Passage]:
    """Join two lists, best first; a chunk in both keeps the better score and both sources."""
    by_chunk: dict[str, Passage] = {}
    for passage in (*first, *second):
        known = by_chunk.get(passage.candidate.id)
        if known is None:
            by_chunk[passage.candidate.id] = passage
            continue
        better = known if known.score >= passage.score else passage
        by_chunk[passage.candidate.id] = msgspec.structs.replace(
            better,
            sources=tuple(dict.fromkeys((*known.sources, *passage.sources))),
            path=known.path or passage.path,
            kind="record" if "record" in (known.kind, passage.kind) else "chunk",
            fields=known.fields or passage.fields,
        )
    return sorted(by_chunk.values(), key=order)
