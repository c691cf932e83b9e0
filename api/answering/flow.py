"""The journey of one question: route, gather, extract, check, cite; as events that may be streamed."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from api.answering.asked import asked_words
from api.answering.compose import answer_of, claims_of, evidence_of, field_claims
from api.answering.explain import explain
from api.answering.extract import Wanted, score_sentences
from api.answering.fields import field_labels, labels_by_document
from api.answering.gather import Gathered, Gatherer
from api.answering.recheck import stale, without
from api.answering.select import select
from api.answering.show import Shown, cut, focus
from api.answering.sources import Ask
from api.retrieval.access import Asker
from api.retrieval.entities import LinkedEntity, link_entities
from api.retrieval.filters import compile_filters
from api.retrieval.names import Names
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion, analyze_question, by_words
from api.retrieval.reader import Reader, open_reader
from api.retrieval.suggest import Suggester
from api.routing.rules import Decision, decide
from api.routing.words import RoutingWords
from pipeline.errors import BackendUnavailable
from pipeline.ports.runtime import Runtime
from pipeline.steps.name_index import NameIndex
from schemas.query import (
    Answer,
    Evidence,
    FreshnessInfo,
    QueryRequest,
    QueryResponse,
    Route,
    RouteEntity,
    Suggestion,
    Usage,
)


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """An answer and what it stands on, before freshness and timings are added."""

    gathered: Gathered
    shown: list[Passage]
    evidence: list[Evidence]
    answer: Answer
    explanation: dict[str, Any]
    suggestions: list[Suggestion] = []


class Flow:
    """Answers questions for one application."""

    def __init__(
        self, runtime: Runtime, names: Names, words: RoutingWords, source_timeout_s: float, suggester: Suggester
    ) -> None:
        """Keep what all questions share."""
        self._runtime, self._names, self._words, self._timeout = runtime, names, words, source_timeout_s
        self._suggester = suggester

    async def run(
        self, request: QueryRequest, asker: Asker, freshness: FreshnessInfo, *, exact: bool
    ) -> AsyncIterator[tuple[str, Any]]:
        """Yield `route`, `evidence`, `token` for each claim, `check`, and `done` with the whole response."""
        clock = _Clock()
        async with open_reader(self._runtime, asker) as reader:
            ask = await self._prepare(reader, request, exact)
            decision = decide(request.question, ask.entities, request.source, self._words)
            clock.lap("route")
            route = _route(request, ask, decision)
            yield "route", route
            done = await self._answer(ask, decision, clock)
            clock.laps["rerank"] = round(reader.rerank_s * 1000, 2)  # a part of `retrieve`
            if not done.answer.answerable:
                meant = await self._suggester.did_you_mean(reader, ask.question)
                done = msgspec.structs.replace(done, suggestions=meant)
        self._runtime.hurry(sorted({e.document.key for e in done.evidence if e.stage == "text"}))
        yield "evidence", done.evidence
        for claim in done.answer.claims:
            yield "token", {"text": claim.text, "citations": claim.citations}
        yield "check", {"groundedness": done.answer.groundedness, "answerable": done.answer.answerable}
        yield "done", _response(request, route, done, freshness, clock, [*ask.notes, *dict.fromkeys(reader.notes)])

    async def _prepare(self, reader: Reader, request: QueryRequest, exact: bool) -> Ask:
        """Analyze the question and find what it names."""
        question = by_words(await analyze_question(self._runtime, request.question), reader.other_model)
        index = await self._names.index(self._runtime.state, reader.generation, exact=exact)
        entities, notes = await self._link(reader, question, index)
        return Ask(
            reader=reader,
            question=question,
            entities=entities,
            notes=[*question.notes, *notes],
            where=compile_filters(request.filters, self._runtime.mappings),
            top_k=request.top_k,
            words=self._words,
            labels=lambda document: list(field_labels(self._runtime.mappings, document).values()),
        )

    async def _link(
        self, reader: Reader, question: AnalyzedQuestion, index: NameIndex
    ) -> tuple[list[LinkedEntity], list[str]]:
        """Link entities; without the graph the texts can still answer."""
        try:
            return await asyncio.wait_for(link_entities(reader, question, index), self._timeout), []
        except (BackendUnavailable, TimeoutError):
            return [], ["the graph did not answer, so no entity of the question is known"]

    async def _answer(self, ask: Ask, decision: Decision, clock: "_Clock") -> Answered:
        """Answer; when evidence changed meanwhile, once more; what changes even then is dropped."""
        done = await self._once(ask, decision, clock)
        if await stale(ask.reader, done.shown, ask.where):
            done = await self._once(ask, decision, clock)
        while changed := await stale(ask.reader, done.shown, ask.where):
            done.gathered.passages = without(done.gathered.passages, changed)
            done.gathered.warnings.append(f"{len(changed)} documents changed while answering and were left out")
            done = await self._extract(ask, decision, done.gathered)
        return done

    async def _once(self, ask: Ask, decision: Decision, clock: "_Clock") -> Answered:
        gathered = await Gatherer(ask, self._timeout).gather(decision)
        clock.lap("retrieve")
        done = await self._extract(ask, decision, gathered)
        clock.lap("answer")
        return done

    async def _extract(self, ask: Ask, decision: Decision, gathered: Gathered) -> Answered:
        """Choose the sentences that answer, and cite them."""
        strategy, question = gathered.strategy, ask.question
        wide = strategy in ("graph", "all")
        names = tuple(entity.ref.key for entity in ask.entities if entity.ref.family != "id")
        wanted = Wanted(
            question=question,
            asked=tuple(asked_words(gathered.rest or question, ask.entities)),
            focus=decision.focus,
            names=names,
            record=strategy == "db",
            corroborated=wide,
        )
        scored = await score_sentences(self._runtime.analyzer, wanted, gathered.passages)
        shown = focus(gathered.passages, scored) if wide else Shown(gathered.passages, scored)
        linked = any(entity.ref.key in question.identifiers for entity in ask.entities)
        chosen = select(shown.scored, shown.passages, wanted, strategy, linked=linked)
        shown, chosen = cut(shown, chosen, ask.top_k)
        evidence = evidence_of(shown.passages)
        claims = claims_of(chosen, evidence)
        if strategy in ("db", "all"):
            labels = labels_by_document(self._runtime.mappings, {piece.document.key for piece in evidence})
            claims = field_claims(question.text, evidence, labels) or claims
        answer = answer_of(question.text, claims, evidence)
        return Answered(
            gathered=gathered,
            shown=shown.passages,
            evidence=evidence,
            answer=answer,
            explanation=explain(wanted, shown),
        )


class _Clock:
    """Milliseconds by stage."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self.laps: dict[str, float] = {"route": 0.0, "retrieve": 0.0, "rerank": 0.0, "answer": 0.0}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = round(self.laps[name] + (now - self._last) * 1000, 2)
        self._last = now

    def total(self) -> dict[str, float]:
        return {**self.laps, "total": round((time.perf_counter() - self._start) * 1000, 2)}


def _route(request: QueryRequest, ask: Ask, decision: Decision) -> Route:
    return Route(
        strategy=decision.strategy,
        by=decision.by,
        confidence=decision.confidence,
        reason=decision.reason,
        rewritten_query=request.question,
        entities=[RouteEntity(id=entity.id, label=entity.label, type=entity.type) for entity in ask.entities],
    )


def _response(
    request: QueryRequest,
    route: Route,
    done: Answered,
    freshness: FreshnessInfo,
    clock: _Clock,
    notes: list[str],
) -> QueryResponse:
    return QueryResponse(
        question=request.question,
        answer=done.answer,
        route=msgspec.structs.replace(route, steps=done.gathered.steps),
        evidence=done.evidence,
        freshness=freshness,
        usage=Usage(),
        timings_ms=clock.total(),
        warnings=[*notes, *done.gathered.warnings],
        suggestions=done.suggestions,
        session_id=request.session_id,
        explanation=done.explanation if request.explain else None,
    )
