"""The second stage: the best of the first stage, scored by the reranker that is configured, within a budget of time.

It never loses a passage, and where the model fails or is late, the first stage's order stands and a note says so.
"""

import asyncio
import math
import time
from collections.abc import Sequence

import msgspec
from msgspec import structs

from api.retrieval.passages import Passage, moved
from api.retrieval.question import MAX_BIGRAMS, AnalyzedQuestion
from pipeline.errors import BackendUnavailable, ModelFailed
from pipeline.ports.reranker import Reranker, RerankPassage, RerankQuestion
from pipeline.steps.sentence_vectors import nearest

RERANKED = 50
"""Passages that the second stage looks at: the first ones, whichever page is asked for."""


class SecondStage(msgspec.Struct, frozen=True, kw_only=True):
    """The reranker and its limit of time."""

    reranker: Reranker
    budget_s: float
    alpha: float | None = None
    """The dense weight that was asked for."""


class Reranked(msgspec.Struct, frozen=True, kw_only=True):
    """All passages that were given, in their new order."""

    passages: list[Passage]
    note: str = ""
    """Why the first stage's order stands; empty when the passages were reranked."""
    seconds: float = 0.0


async def rerank(stage: SecondStage, question: AnalyzedQuestion, passages: Sequence[Passage]) -> Reranked:
    """Return the passages by the reranker's scores, those that hold more of the asked identifiers first.

    Ties keep the first stage's order. The passages' places keep the first stage's scores, so that what is compared
    with those (thresholds, the rest of the list) still means the same; the model's own score is in `candidate.rerank`.
    """
    began = time.perf_counter()
    try:
        async with asyncio.timeout(stage.budget_s):
            scores = await stage.reranker.rerank(
                asked(question, stage.alpha), [seen(passage) for passage in passages], budget_s=stage.budget_s
            )
        _check(scores, len(passages))
    except TimeoutError:
        note = f"the reranker did not answer within {stage.budget_s:g} s: in the order of the first stage"
    except BackendUnavailable as error:
        note = f"not reranked, in the order of the first stage: {error}"
    else:
        return Reranked(passages=_ordered(passages, scores), seconds=time.perf_counter() - began)
    return Reranked(passages=list(passages), note=note, seconds=time.perf_counter() - began)


def _check(scores: Sequence[float], expected: int) -> None:
    if len(scores) != expected or not all(math.isfinite(score) for score in scores):
        raise ModelFailed(f"the reranker gave {len(scores)} scores for {expected} passages, or one that is no number")


def _ordered(passages: Sequence[Passage], scores: Sequence[float]) -> list[Passage]:
    order = sorted(range(len(passages)), key=lambda n: (-passages[n].candidate.exact, -scores[n], n))
    return [moved(passages[n], passages[place], rerank=scores[n]) for place, n in enumerate(order)]


async def with_sentences(question: AnalyzedQuestion, passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages with how near their sentences are to the question; off the event loop."""
    packed = [one.sentence_vectors for one in passages]
    if question.vector is None or not any(packed):
        return list(passages)
    scores = await asyncio.to_thread(nearest, question.vector, packed)
    return [
        one if score is None else structs.replace(one, candidate=structs.replace(one.candidate, sentence_score=score))
        for one, score in zip(passages, scores, strict=True)
    ]


def asked(question: AnalyzedQuestion, alpha: float | None = None) -> RerankQuestion:
    """Return the question as rerankers see it."""
    return RerankQuestion(
        text=question.text,
        terms=question.lexical.terms,
        identifiers=question.identifiers,
        bigrams=question.analysis.bigrams[:MAX_BIGRAMS],
        variants=question.variants,
        query_type=question.query_type,
        alpha=alpha,
    )


def seen(passage: Passage) -> RerankPassage:
    """Return the passage as rerankers see it."""
    found = passage.candidate
    signals = {"score": found.score}
    if found.bm25 is not None:
        signals["bm25_rank"] = float(found.bm25)
    if found.bm25_score is not None:
        signals["bm25"] = found.bm25_score
    if found.dense is not None:
        signals["dense_rank"] = float(found.dense)
    if found.dense_score is not None:
        signals["dense"] = found.dense_score
    if found.sentence_score is not None:
        signals["sentence"] = found.sentence_score
    return RerankPassage(
        text=passage.text,
        title=found.manifest.title,
        headings=passage.headings,
        terms=passage.sequence,
        title_terms=passage.title_terms,
        bigrams=passage.bigrams,
        signals=signals,
    )
