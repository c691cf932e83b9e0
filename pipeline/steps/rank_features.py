"""What can be told of a candidate without a model: how its words, their order and each retriever speak for it.

All features are 0 to 1, and more is better. Words count by their inverse document frequency among the candidates.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.text.normalize import fold, matching_form
from pipeline.text.terms import bigrams

Floats = npt.NDArray[np.float64]

FEATURES = (
    "bm25",
    "dense",
    "dense_uncovered",
    "words",
    "coverage",
    "title",
    "window",
    "order",
    "proximity",
    "bigrams",
    "bigrams_bm25",
    "run",
    "characters",
    "same_title",
    "others_same_title",
    "synonyms",
)
"""Columns of a feature matrix.

`bm25`, `dense`: the retriever's score between its list's worst and best; `dense_uncovered`: the same times the share of
the question's weight that the best chunk by words lacks; `words`: BM25 (Robertson and Zaragoza 2009) with an early
saturation, over the best; `coverage`, `title`: share of the question's weight in the chunk, in its title and headings;
`window`: the same in the best stretch of it; `order`, `proximity`: neighbours in the question that are neighbours here,
and how near its words stand to each other (Rasolofo and Savoy 2003); `bigrams`, `bigrams_bm25`, `characters`: share of
the question's pairs of characters, by weight, in text or title, the same as BM25, and of its characters, each without
those of hiragana alone, which are mostly grammar; `run`: unbroken rows of these pairs, long ones counting for more than
their parts; `same_title`, `others_same_title`: share of all candidates' evidence that stands under the same title, with
and without this one (a document is about what several of its passages answer); `synonyms`: weight of synonyms that
stand for words it lacks.
"""
DENSE = frozenset(("dense", "dense_uncovered"))
"""Those that come from vectors."""
_K1, _B = 0.6, 0.75
_TITLE = 3
"""A word of the title counts as so many of the text."""
_B_PAIRS, _TITLE_PAIRS = 0.5, 2
"""The same of pairs of characters."""
_EVIDENCE = (("words", 0.5), ("dense", 0.3), ("bigrams", 0.3))
_SHARPNESS = 8
"""Of the shares of evidence: a candidate that is behind by .1 counts for less than half."""
_GRAMMAR = re.compile("[ぁ-ゖー]+")
_WINDOW = 30
"""Terms: about a sentence."""
_NEAR = 5
_MOST_TERMS = 32
"""Of a question: more would cost time, and say nothing that these do not."""


class _Words(msgspec.Struct, frozen=True):
    """A question's words with their weights, which sum to 1."""

    weights: dict[str, float]
    pairs: tuple[tuple[str, str], ...]
    synonyms: dict[str, float]
    bigrams: dict[str, float]
    row: tuple[str, ...]
    """All bigrams as they follow each other; those without a weight do not break a run."""
    characters: dict[str, float]


class _Text(msgspec.Struct, frozen=True):
    """A candidate's words, and the pairs of characters that the question has too, counted."""

    body: Counter[str]
    title: Counter[str]
    pairs: Counter[str]
    title_pairs: Counter[str]
    all_pairs: frozenset[str]
    number_of_pairs: int
    characters: frozenset[str]


def features(question: RerankQuestion, candidates: Sequence[RerankPassage]) -> Floats:
    """Return a row of FEATURES for each candidate; does not depend on the order of the candidates."""
    if not candidates:
        return np.zeros((0, len(FEATURES)))
    asked = frozenset(question.bigrams)
    texts = [_text(one, asked) for one in candidates]
    words = _words(question, texts)
    by_words = _bm25_of_words(words.weights, texts)
    rows = [_of_one(words, one, text) for one, text in zip(candidates, texts, strict=True)]
    found = {name: np.array(column) for name, column in zip(_OF_ONE, zip(*rows, strict=True), strict=True)}
    found["bm25"] = _relative([one.signals.get("bm25") for one in candidates])
    found["dense"] = _relative([one.signals.get("dense") for one in candidates])
    found["dense_uncovered"] = found["dense"] * (1 - found["coverage"][found["bm25"] == found["bm25"].max()].max())
    found["words"] = by_words / (by_words.max() or 1.0)
    found["bigrams_bm25"] = _bm25_of_pairs(words.bigrams, texts)
    evidence = np.round(sum((weight * found[name] for name, weight in _EVIDENCE), np.zeros(len(texts))), 9)
    found["same_title"], found["others_same_title"] = _same_title([one.title for one in candidates], evidence)
    table = np.column_stack([found[name] for name in FEATURES])
    return np.asarray(np.round(np.clip(table, 0.0, 1.0), 9), np.float64)


def _text(passage: RerankPassage, asked: frozenset[str]) -> _Text:
    above = _title_bigrams(passage.title, tuple(passage.headings))
    pairs = Counter({pair: passage.bigrams.count(pair) for pair in asked if pair in passage.bigrams})
    return _Text(
        body=Counter(passage.terms),
        title=Counter(passage.title_terms),
        pairs=pairs,
        title_pairs=Counter(above),
        all_pairs=asked.intersection(above).union(pairs),
        number_of_pairs=len(passage.bigrams),
        characters=frozenset("".join((*passage.bigrams, *above))),
    )


@lru_cache(maxsize=4_096)
def _title_bigrams(title: str, headings: tuple[str, ...]) -> tuple[str, ...]:
    """Remembered: candidates of one document share them, and folding is what takes the time."""
    return bigrams(matching_form(fold("\n".join((title, *headings)))[0]))


def _words(question: RerankQuestion, texts: Sequence[_Text]) -> _Words:
    terms, row = question.terms[:_MOST_TERMS], question.bigrams
    there = [text.all_pairs for text in texts]
    return _Words(
        weights=_rarity(terms, [text.body.keys() | text.title.keys() for text in texts]),
        pairs=tuple(pairwise(terms)),
        synonyms=dict(question.synonyms),
        bigrams=_rarity([pair for pair in row if not _GRAMMAR.fullmatch(pair)], there),
        row=row,
        characters=_rarity(_GRAMMAR.sub("", "".join(row)), [text.characters for text in texts]),
    )


def _rarity(items: Sequence[str], texts: Sequence[object]) -> dict[str, float]:
    """Return the share of each item in the sum of inverse document frequencies."""
    n = len(texts)
    found = {item: sum(item in text for text in texts) for item in dict.fromkeys(items)}  # type: ignore[operator]
    idf = {item: math.log(1 + (n - df + 0.5) / (df + 0.5)) for item, df in found.items()}
    total = math.fsum(idf.values()) or 1.0
    return {item: value / total for item, value in idf.items()}


def _relative(scores: Sequence[float | None]) -> Floats:
    """Scale to 0..1 between worst and best; what was not found stands at 0."""
    there = [score for score in scores if score is not None]
    if not there:
        return np.zeros(len(scores))
    low, high = min(there), max(there)
    spread = high - low
    return np.array([0.0 if s is None else (s - low) / spread if spread else 1.0 for s in scores])


def _bm25_of_words(weights: Mapping[str, float], texts: Sequence[_Text]) -> Floats:
    lengths = np.array([text.body.total() + _TITLE * text.title.total() for text in texts])
    counts = {term: [text.body[term] + _TITLE * text.title[term] for text in texts] for term in weights}
    return _bm25(weights, counts, lengths, _B)


def _bm25_of_pairs(weights: Mapping[str, float], texts: Sequence[_Text]) -> Floats:
    lengths = np.array([text.number_of_pairs + _TITLE_PAIRS * text.title_pairs.total() for text in texts])
    counts = {pair: [text.pairs[pair] + _TITLE_PAIRS * text.title_pairs[pair] for text in texts] for pair in weights}
    return _bm25(weights, counts, lengths, _B_PAIRS)


def _bm25(weights: Mapping[str, float], counts: Mapping[str, Sequence[int]], lengths: Floats, b: float) -> Floats:
    """Return the scores, 0 to below 1; `counts` are by candidate."""
    norms = _K1 * (1 - b + b * lengths / (lengths.mean() or 1.0))
    scores = np.zeros(len(lengths))
    for term, weight in weights.items():
        often = np.array(counts[term], np.float64)
        scores += weight * often / (often + norms)
    return scores


def _same_title(titles: Sequence[str], evidence: Floats) -> tuple[Floats, Floats]:
    """Return the share of the evidence under each one's title, and the others' part of it; no title is its own."""
    likely = np.exp(_SHARPNESS * (evidence - evidence.max()))
    total = math.fsum(likely)
    groups: dict[str | int, list[float]] = defaultdict(list)
    for n, title in enumerate(titles):
        groups[title or n].append(float(likely[n]))
    whole = np.array([math.fsum(groups[title or n]) for n, title in enumerate(titles)]) / total
    return whole, whole - likely / total


_OF_ONE = ("coverage", "title", "window", "order", "proximity", "bigrams", "run", "characters", "synonyms")


def _of_one(words: _Words, passage: RerankPassage, text: _Text) -> tuple[float, ...]:
    weights, body, title = words.weights, text.body, text.title
    covered = math.fsum(w for term, w in weights.items() if term in body or term in title)
    spots = [(at, term) for at, term in enumerate(passage.terms) if term in weights]
    return (
        covered,
        math.fsum(w for term, w in weights.items() if term in title),
        _window(spots, weights),
        *_near(words, spots),
        math.fsum(w for pair, w in words.bigrams.items() if pair in text.all_pairs),
        _run(words, text.all_pairs),
        math.fsum(w for character, w in words.characters.items() if character in text.characters),
        min(1.0, math.fsum(w for term, w in words.synonyms.items() if term in body) * (1 - covered)),
    )


def _window(spots: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> float:
    """Return the largest share of the question's weight within one stretch."""
    best, first, now = 0.0, 0, 0.0
    inside: Counter[str] = Counter()
    for at, term in spots:
        inside[term] += 1
        if inside[term] == 1:
            now += weights[term]
        while spots[first][0] <= at - _WINDOW:
            gone = spots[first][1]
            inside[gone] -= 1
            if not inside[gone]:
                now -= weights[gone]
            first += 1
        best = max(best, now)
    return best


def _near(words: _Words, spots: Sequence[tuple[int, str]]) -> tuple[float, float]:
    """Return how many neighbours of the question follow each other here, and how near any two of its words stand."""
    weights = words.weights
    order: dict[tuple[str, str], float] = {}
    near: dict[tuple[str, str], float] = {}
    wanted = set(words.pairs)
    for n, (at, term) in enumerate(spots):
        for later, other in spots[n + 1 : n + 1 + _NEAR]:
            gap = later - at
            if gap > _NEAR or other == term:
                continue
            if (term, other) in wanted:
                order[term, other] = max(order.get((term, other), 0.0), 1 / gap)
            key = (term, other) if term < other else (other, term)
            near[key] = max(near.get(key, 0.0), 1 / gap**2)
    possible = math.fsum(min(weights[a], weights[b]) for a, b in wanted) or 1.0
    ordered = math.fsum(min(weights[a], weights[b]) * value for (a, b), value in order.items())
    close = math.fsum(min(weights[a], weights[b]) * value for (a, b), value in near.items())
    return ordered / possible, min(1.0, close / possible)


def _run(words: _Words, there: frozenset[str]) -> float:
    """Return how much of the question's bigrams stands in unbroken rows: the root of the squares of their weights."""
    rows, now = [], 0.0
    for pair in words.row:
        if pair in there:
            now += words.bigrams.get(pair, 0.0)
        else:
            rows.append(now)
            now = 0.0
    return math.sqrt(math.fsum(length * length for length in (*rows, now)))
