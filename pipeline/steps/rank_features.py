"""What can be told of a candidate without a model: how its words, their order and each retriever speak for it.

All features are 0 to 1, and more is better. Words count by their inverse document frequency among the candidates.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.ports.reranker import RerankPassage, RerankQuestion

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
    "run",
    "synonyms",
)
"""Columns of a feature matrix.

`bm25`, `dense`: the retriever's score between its list's worst and best; `dense_uncovered`: the same times the share of
the question's weight that the best chunk by words lacks; `words`: BM25 (Robertson and Zaragoza 2009) with an early
saturation, over the best; `coverage`, `title`: share of the question's weight in the chunk, in its title and headings;
`window`: the same in the best stretch of it; `order`, `proximity`: neighbours in the question that are neighbours here,
and how near its words stand to each other (Rasolofo and Savoy 2003); `bigrams`, `run`: shared pairs of characters, and
the longest unbroken row of them; `synonyms`: weight of synonyms that stand for words it lacks.
"""
DENSE = frozenset(("dense", "dense_uncovered"))
"""Those that come from vectors."""
_K1, _B = 0.6, 0.75
_TITLE = 3
"""A word of the title counts as so many of the text."""
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
    """The bigrams as they follow each other."""


def features(question: RerankQuestion, candidates: Sequence[RerankPassage]) -> Floats:
    """Return a row of FEATURES for each candidate; does not depend on the order of the candidates."""
    if not candidates:
        return np.zeros((0, len(FEATURES)))
    held = [Counter(one.terms) for one in candidates]
    titles = [Counter(one.title_terms) for one in candidates]
    asked = frozenset(question.bigrams)
    pairs = [frozenset(pair for pair in asked if pair in one.bigrams) for one in candidates]
    words = _words(question, [h.keys() | t.keys() for h, t in zip(held, titles, strict=True)], pairs)
    table = np.zeros((len(candidates), len(FEATURES)))
    table[:, 0] = _relative([one.signals.get("bm25") for one in candidates])
    table[:, 1] = _relative([one.signals.get("dense") for one in candidates])
    table[:, 3] = _bm25(words.weights, held, titles)
    for n, (one, body, title, there) in enumerate(zip(candidates, held, titles, pairs, strict=True)):
        table[n, 4:] = _of_one(words, one, body, title, there)
    covered = table[table[:, 0] == table[:, 0].max(), 4].max()
    table[:, 2] = table[:, 1] * (1 - covered)
    return np.asarray(np.round(np.clip(table, 0.0, 1.0), 9), np.float64)


def _words(question: RerankQuestion, texts: Sequence[object], pairs: Sequence[frozenset[str]]) -> _Words:
    terms, row = question.terms[:_MOST_TERMS], question.bigrams
    return _Words(
        weights=_rarity(terms, texts),
        pairs=tuple(pairwise(terms)),
        synonyms=dict(question.synonyms),
        bigrams=_rarity(row, pairs),
        row=row,
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


def _bm25(weights: Mapping[str, float], held: Sequence[Counter[str]], titles: Sequence[Counter[str]]) -> Floats:
    lengths = np.array([body.total() + _TITLE * title.total() for body, title in zip(held, titles, strict=True)])
    norms = _K1 * (1 - _B + _B * lengths / (lengths.mean() or 1.0))
    scores = np.zeros(len(held))
    for term, weight in weights.items():
        counts = np.array([b[term] + _TITLE * t[term] for b, t in zip(held, titles, strict=True)], np.float64)
        scores += weight * counts * (_K1 + 1) / (counts + norms)
    return scores / (scores.max() or 1.0)


def _of_one(
    words: _Words, passage: RerankPassage, body: Counter[str], title: Counter[str], there: frozenset[str]
) -> tuple[float, ...]:
    weights = words.weights
    covered = math.fsum(w for term, w in weights.items() if term in body or term in title)
    in_title = math.fsum(w for term, w in weights.items() if term in title)
    spots = [(at, term) for at, term in enumerate(passage.terms) if term in weights]
    shared = math.fsum(w for pair, w in words.bigrams.items() if pair in there)
    return (
        covered,
        in_title,
        _window(spots, weights),
        *_near(words, spots),
        shared,
        _run(words.row, there),
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


def _run(row: Sequence[str], there: frozenset[str]) -> float:
    """Return the longest unbroken row of the question's bigrams that the text has, as a share of all."""
    longest = now = 0
    for pair in row:
        now = now + 1 if pair in there else 0
        longest = max(longest, now)
    return longest / len(row) if row else 0.0
