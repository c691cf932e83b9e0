"""What can be told of a candidate without a model: how its words, their order and each retriever speak for it.

All features are 0 to 1, and more is better. Words count by their inverse document frequency among the candidates.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.steps.rank_held import GRAMMAR, TITLE, Asked, Held, asked_of, held_by

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
_B_PAIRS, _TITLE_PAIRS = 0.5, 2
"""Of pairs of characters; one of the title counts as two of the text."""
_EVIDENCE = (("words", 0.5), ("dense", 0.3), ("bigrams", 0.3))
_SHARPNESS = 8
"""Of the shares of evidence: a candidate that is behind by .1 counts for less than half."""
_WINDOW = 30
"""Terms: about a sentence."""
_NEAR = 5
_FAR = _NEAR + 1


class _Words(msgspec.Struct, frozen=True):
    """A question's words with their weights, which sum to 1."""

    weights: dict[str, float]
    pairs: dict[tuple[str, str], float]
    """Neighbours in the question, by the smaller of their weights."""
    synonyms: dict[str, float]
    bigrams: dict[str, float]
    row: tuple[str, ...]
    """All bigrams as they follow each other; those without a weight do not break a run."""
    characters: dict[str, float]


def features(question: RerankQuestion, candidates: Sequence[RerankPassage]) -> Floats:
    """Return a row of FEATURES for each candidate; does not depend on the order of the candidates."""
    if not candidates:
        return np.zeros((0, len(FEATURES)))
    asked = asked_of(question)
    texts = [held_by(one, asked) for one in candidates]
    words = _words(question, asked, texts)
    by_words = _bm25_of_words(words.weights, texts)
    rows = [_of_one(words, text) for text in texts]
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


def _words(question: RerankQuestion, asked: Asked, texts: Sequence[Held]) -> _Words:
    row = question.bigrams
    weights = _rarity(asked.terms, [text.body.keys() | text.title.keys() for text in texts])
    return _Words(
        weights=weights,
        pairs={(a, b): min(weights[a], weights[b]) for a, b in pairwise(asked.terms)},
        synonyms=dict(question.synonyms),
        bigrams=_rarity([p for p in row if not GRAMMAR.fullmatch(p)], [text.all_pairs for text in texts]),
        row=row,
        characters=_rarity(asked.characters, [text.characters for text in texts]),
    )


def _rarity(items: Sequence[str], texts: Sequence[Set[str]]) -> dict[str, float]:
    """Return the share of each item in the sum of inverse document frequencies."""
    n, found = len(texts), Counter(item for text in texts for item in text)
    idf = {item: math.log(1 + (n - found[item] + 0.5) / (found[item] + 0.5)) for item in dict.fromkeys(items)}
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


def _bm25_of_words(weights: Mapping[str, float], texts: Sequence[Held]) -> Floats:
    lengths = np.array([text.length for text in texts])
    counts = {term: [text.body.get(term, 0) + TITLE * text.title.get(term, 0) for text in texts] for term in weights}
    return _bm25(weights, counts, lengths, _B)


def _bm25_of_pairs(weights: Mapping[str, float], texts: Sequence[Held]) -> Floats:
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


def _of_one(words: _Words, text: Held) -> tuple[float, ...]:
    weights, body, title = words.weights, text.body, text.title
    covered = math.fsum(w for term, w in weights.items() if term in body or term in title)
    return (
        covered,
        math.fsum(w for term, w in weights.items() if term in title),
        _window(text.spots, weights),
        *_near(words, text.spots),
        math.fsum(w for pair, w in words.bigrams.items() if pair in text.all_pairs),
        _run(words, text.all_pairs),
        math.fsum(w for character, w in words.characters.items() if character in text.characters),
        min(1.0, math.fsum(w for term, w in words.synonyms.items() if term in body) * (1 - covered)),
    )


def _window(spots: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> float:
    """Return the largest share of the question's weight within one stretch."""
    best, first, now = 0.0, 0, 0.0
    inside = dict.fromkeys(weights, 0)
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
        if now > best:  # noqa: PLR1730 - in half the time
            best = now
    return best


def _near(words: _Words, spots: Sequence[tuple[int, str]]) -> tuple[float, float]:
    """Return how many neighbours of the question follow each other here, and how near any two of its words stand."""
    weights, pairs = words.weights, words.pairs
    order: dict[tuple[str, str], int] = {}
    near: dict[tuple[str, str], int] = {}
    for n, (at, term) in enumerate(spots):
        for later, other in spots[n + 1 : n + 1 + _NEAR]:
            gap = later - at
            if gap > _NEAR:
                break
            if other == term:
                continue
            key = (term, other)
            if key in pairs and gap < order.get(key, _FAR):
                order[key] = gap
            key = key if term < other else (other, term)
            if gap < near.get(key, _FAR):
                near[key] = gap
    possible = math.fsum(pairs.values()) or 1.0
    ordered = math.fsum(pairs[key] / gap for key, gap in order.items())
    close = math.fsum(min(weights[a], weights[b]) / gap**2 for (a, b), gap in near.items())
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
