"""Extraction: the sentences of the evidence that answer best, each scored by what can be told without a model."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from api.answering.sentences import Sentence, sentences
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from api.routing.words import Focus
from pipeline.ports.models import Analyzer
from pipeline.text.normalize import fold
from schemas.document import Analysis

_COVERAGE, _CUE, _IDENTIFIER, _RETRIEVAL = 0.45, 0.25, 0.1, 0.2
_CONTEXT = 0.6
"""What a word is worth that stands in the heading above, not in the sentence."""
_TITLE = 0.3
_QUESTION = re.compile(r"(?:か|かな)?[?？]$|(?:です|ます|ました|でした|ません|せん)か。?$|[^し]たか。?$|のか。?$")
_GOOD_LENGTH = range(8, 220)
_ENOUGH_CUES = 2
_MOST_SENTENCES = 400


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a passage with its score."""

    passage: int
    """Place of the passage in the list given."""
    sentence: Sentence
    score: float
    coverage: float
    """Share of the question's words, by weight, found in the sentence or above it."""
    named: bool
    """True when an asked identifier stands in the sentence, its heading or its document's title."""


class _Query(msgspec.Struct, frozen=True):
    weights: dict[str, float]
    identifiers: frozenset[str]
    focus: Focus | None


async def score_sentences(
    analyzer: Analyzer, question: AnalyzedQuestion, passages: Sequence[Passage], focus: Focus | None
) -> list[Scored]:
    """Return all sentences of the passages, best first; ties by place."""
    cut = [(n, sentence) for n, passage in enumerate(passages) for sentence in sentences(passage.text)]
    cut = cut[:_MOST_SENTENCES]
    contexts = ["\n".join(passage.headings) for passage in passages]
    titles = [passage.candidate.manifest.title for passage in passages]
    analyses = await analyzer.tokens([sentence.text for _, sentence in cut] + contexts + titles)
    return await asyncio.to_thread(_score, question, passages, focus, cut, analyses)


def _score(
    question: AnalyzedQuestion,
    passages: Sequence[Passage],
    focus: Focus | None,
    cut: Sequence[tuple[int, Sentence]],
    analyses: Sequence[Analysis],
) -> list[Scored]:
    own, above = analyses[: len(cut)], analyses[len(cut) :]
    contexts, titles = above[: len(passages)], above[len(passages) :]
    query = _Query(_weights(question, own), frozenset(question.identifiers), focus)
    scored = [
        _score_one(query, n, passages[n], sentence, analysis, contexts[n], titles[n])
        for (n, sentence), analysis in zip(cut, own, strict=True)
    ]
    return sorted(scored, key=lambda s: (-s.score, s.passage, s.sentence.start))


def _weights(question: AnalyzedQuestion, analyses: Sequence[Analysis]) -> dict[str, float]:
    """Weigh each word of the question by how rare it is among the sentences."""
    seen = Counter(term for analysis in analyses for term in set(analysis.terms))
    total = len(analyses) + 1
    return {term: math.log(1 + total / (1 + seen[term])) for term in dict.fromkeys(question.analysis.terms)}


def _score_one(
    query: _Query,
    place: int,
    passage: Passage,
    sentence: Sentence,
    own: Analysis,
    context: Analysis,
    title: Analysis,
) -> Scored:
    coverage = _coverage(query.weights, set(own.terms), set(context.terms), set(title.terms))
    held = query.identifiers & {*own.identifiers, *own.terms}
    around = query.identifiers & {*context.terms, *title.terms, *context.identifiers, *title.identifiers}
    cue = _cue(query.focus, sentence.text)
    identifier = 1.0 if held else 0.5 if around else 0.0
    score = _COVERAGE * coverage + _CUE * cue + _IDENTIFIER * identifier + _RETRIEVAL * min(1.0, passage.score)
    return Scored(
        passage=place,
        sentence=sentence,
        score=round(score * _form(sentence.text), 6),
        coverage=coverage,
        named=bool(held or around),
    )


def _coverage(weights: dict[str, float], own: set[str], context: set[str], title: set[str]) -> float:
    total = sum(weights.values())
    found = sum(
        weight * (1.0 if term in own else _CONTEXT if term in context else _TITLE if term in title else 0.0)
        for term, weight in weights.items()
    )
    return found / total if total else 0.0


def _cue(focus: Focus | None, text: str) -> float:
    """Say how much a sentence looks like an answer to such a question, 0 to 1."""
    return min(_ENOUGH_CUES, focus.answer.count(fold(text)[0])) / _ENOUGH_CUES if focus else 0.0


def _form(text: str) -> float:
    """Questions are no answers; fragments and very long sentences are poor ones."""
    factor = 1.0 if len(text) in _GOOD_LENGTH else 0.7
    return factor * (0.4 if _QUESTION.search(text) else 1.0)
