"""Extraction: the sentences of the evidence that answer best, each scored by what can be told without a model."""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion
from api.routing.words import Focus
from pipeline.ports.models import Analyzer
from pipeline.text.normalize import fold
from pipeline.text.sentences import Sentence, sentences
from schemas.document import Analysis

_COVERAGE, _CUE, _IDENTIFIER, _RETRIEVAL = 0.45, 0.25, 0.1, 0.2
_CONTEXT = 0.6
"""What a word is worth that stands in the heading above, not in the sentence."""
_TITLE = 0.3
_NAME = 0.2
"""What a word of the thing's name is worth beside a word that is asked of it."""
_QUESTION = re.compile(
    r"[?？]$|(?:です|ます|ました|でした|ません|せん|でしょう|の|た)か。?$|教えて|知りたい|いただけ(?:ます|ません)か|お願い(?:します|いたします)"
)
_GOOD_LENGTH = range(8, 220)
_SUPPORT = 0.3
_ENOUGH_SHARED = 0.35
_AROUND = 0.6
_FEWEST_SHARED = 2
_NAMED = 1.3
_FEWEST_IN_BEST = 4
_GOOD_COVERAGE = 0.4
_WHOLE = re.compile(r"[。．.！!？?」』）)]$")
_ENOUGH_CUES = 2
_MOST_SENTENCES = 600


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentence is judged by."""

    question: AnalyzedQuestion
    asked: tuple[str, ...]
    """The question's words that are no part of a name."""
    focus: Focus | None
    names: tuple[str, ...] = ()
    """Folded names of what is asked about, aliases too; identifiers are known by their terms."""
    record: bool = False
    """True when all passages are of the very thing: its name tells nothing then."""
    corroborated: bool = False
    """True when sentences that agree with the best one are wanted, too."""


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a passage with its score."""

    passage: int
    """Place of the passage in the list given."""
    sentence: Sentence
    score: float
    coverage: float
    """Share of the question's words, by weight, found in the sentence or above it."""
    cue: float
    """How much it looks like an answer to such a question, 0 to 1."""
    named: bool
    """True when an asked identifier stands in the sentence, its heading or its document's title."""
    support: float = 0.0
    """How much it shares with the best sentence, 0 to 1: other documents on the same matter, in other words."""


async def score_sentences(analyzer: Analyzer, wanted: Wanted, passages: Sequence[Passage]) -> list[Scored]:
    """Return all sentences of the passages, best first; ties by place."""
    cut = [(n, sentence) for n, passage in enumerate(passages) for sentence in sentences(passage.text)]
    cut = cut[:_MOST_SENTENCES]
    contexts = ["\n".join(passage.headings) for passage in passages]
    titles = [passage.candidate.manifest.title for passage in passages]
    texts = [sentence.text for _, sentence in cut] + contexts + titles
    distinct = list(dict.fromkeys(texts))
    known = dict(zip(distinct, await analyzer.tokens(distinct), strict=True))
    return await asyncio.to_thread(_score, wanted, passages, cut, [known[text] for text in texts])


def _score(
    wanted: Wanted, passages: Sequence[Passage], cut: Sequence[tuple[int, Sentence]], analyses: Sequence[Analysis]
) -> list[Scored]:
    own, above = analyses[: len(cut)], analyses[len(cut) :]
    contexts, titles = above[: len(passages)], above[len(passages) :]
    rarity = _Rarity(own)
    weights = _weights(wanted, rarity)
    scored = [
        _score_one(wanted, weights, n, passages[n], sentence, (analysis, contexts[n], titles[n]))
        for (n, sentence), analysis in zip(cut, own, strict=True)
    ]
    if wanted.corroborated and scored:
        scored = _supported(wanted, scored, own, rarity)
    return sorted(scored, key=lambda s: (-s.score, s.passage, s.sentence.start))


class _Rarity:
    """How rare words are among the sentences."""

    def __init__(self, analyses: Sequence[Analysis]) -> None:
        self._seen = Counter(term for analysis in analyses for term in set(analysis.terms))
        self._total = len(analyses) + 1

    def of(self, term: str) -> float:
        return math.log(1 + self._total / (1 + self._seen[term]))


def _weights(wanted: Wanted, rarity: _Rarity) -> dict[str, float]:
    """Weigh each word of the question by how rare it is, and names lower."""
    name = 1.0 if not wanted.asked else 0.0 if wanted.record else _NAME
    return {
        term: rarity.of(term) * (1.0 if term in wanted.asked else name)
        for term in dict.fromkeys(wanted.question.analysis.terms)
    }


def _supported(wanted: Wanted, scored: list[Scored], analyses: Sequence[Analysis], rarity: _Rarity) -> list[Scored]:
    """Raise the sentences that share rare words with the best one or with its passage, if that one is good."""
    best = max(range(len(scored)), key=lambda n: scored[n].score)
    if scored[best].coverage < _GOOD_COVERAGE:
        return scored
    plain = {term for term in analyses[best].terms if _tells(term, wanted)}
    if len(plain) < _FEWEST_IN_BEST:
        return scored
    near = (a.terms for one, a in zip(scored, analyses, strict=True) if one.passage == scored[best].passage)
    core = {term: _AROUND * rarity.of(term) for terms in near for term in terms if _tells(term, wanted)}
    core |= {term: rarity.of(term) for term in plain}
    enough = _ENOUGH_SHARED * sum(rarity.of(term) for term in plain)
    raised = []
    for one, analysis in zip(scored, analyses, strict=True):
        shared = core.keys() & set(analysis.terms)
        told = len(shared) >= _FEWEST_SHARED and _form(one.sentence.text) == 1.0
        raised.append(_raised(one, min(1.0, sum(core[term] for term in shared) / enough) if told else 0.0))
    return raised


def _raised(one: Scored, support: float) -> Scored:
    """Add what the support is worth: more when the thing is named, and a cue counts more, too."""
    more = _SUPPORT * support * (_NAMED if one.named else 1.0)
    more += _CUE * one.cue * max(0.0, _trust(support) - _trust(one.coverage))
    return msgspec.structs.replace(one, support=round(support, 4), score=round(one.score + more, 6))


def _tells(term: str, wanted: Wanted) -> bool:
    """Say whether a word of the best sentence tells something that was not asked: no numbers, no single letters."""
    return len(term) > 1 and not term.isdecimal() and term not in wanted.question.analysis.terms


def _score_one(
    wanted: Wanted,
    weights: dict[str, float],
    place: int,
    passage: Passage,
    sentence: Sentence,
    analyses: tuple[Analysis, Analysis, Analysis],
) -> Scored:
    own, *around = ({*analysis.terms, *analysis.identifiers} for analysis in analyses)
    identifiers, folded = set(wanted.question.identifiers), fold(sentence.text)[0]
    own |= identifiers & around[0]  # a section headed by the identifier is about it
    coverage = _coverage(weights, own, *around)
    cue = _cue(wanted.focus, folded)
    held = bool(identifiers & own) or any(name in folded for name in wanted.names)
    above = bool(identifiers & set().union(*around))
    identifier = 0.0 if wanted.record else 1.0 if held else 0.5 if above else 0.0
    identifier *= 0.3 + 0.7 * max(cue, min(1.0, 2 * coverage))  # a name alone tells nothing
    score = _COVERAGE * coverage + _CUE * cue * _trust(coverage) + _IDENTIFIER * identifier
    score += _RETRIEVAL * min(1.0, passage.score)
    return Scored(
        passage=place,
        sentence=sentence,
        score=round(score * _form(sentence.text), 6),
        coverage=coverage,
        cue=cue,
        named=held or above,
    )


def _coverage(weights: dict[str, float], own: set[str], context: set[str], title: set[str]) -> float:
    total = sum(weights.values())
    found = sum(
        weight * (1.0 if term in own else _CONTEXT if term in context else _TITLE if term in title else 0.0)
        for term, weight in weights.items()
    )
    return found / total if total else 0.0


def _trust(agreement: float) -> float:
    """Say how far a cue counts: a cause that is given for something else is no answer."""
    return 0.4 + 0.6 * min(1.0, 2 * agreement)


def _cue(focus: Focus | None, folded: str) -> float:
    """Count words that answers to such questions have."""
    return min(_ENOUGH_CUES, focus.answer.count(folded)) / _ENOUGH_CUES if focus else 0.0


def _form(text: str) -> float:
    """Questions are no answers; fragments and very long sentences are poor ones."""
    factor = (1.0 if len(text) in _GOOD_LENGTH else 0.7) * (1.0 if _WHOLE.search(text) else 0.75)
    return factor * (0.2 if _QUESTION.search(text) else 1.0)
