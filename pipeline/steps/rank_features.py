"""What can be told of a candidate without a model: how its words, their order and each retriever speak for it.

All features are 0 to 1, and more is better. Words count by their inverse document frequency among the candidates.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.steps.rank_held import GRAMMAR, TITLE, Asked, Flags, Held, Ints, asked_of, held_by

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
    "dense_alone",
)
"""Columns of a feature matrix.

`bm25`, `dense`: the retriever's score between its list's worst and best; of vectors, to a passage's likeness that of
its nearest sentence is added (its own again, where it is one sentence); `dense_uncovered`: the same times the share of
the question's weight that the best chunk by words lacks; `words`: BM25 (Robertson and Zaragoza 2009) with an early
saturation, over the best; `coverage`, `title`: share of the question's weight in the chunk, in its title and headings;
`window`: the same in the best stretch of it; `order`, `proximity`: neighbours in the question that are neighbours here,
and how near its words stand to each other (Rasolofo and Savoy 2003); `bigrams`, `bigrams_bm25`, `characters`: share of
the question's pairs of characters, by weight, in text or title, the same as BM25, and of its characters, each without
those of hiragana alone, which are mostly grammar; `run`: unbroken rows of these pairs, long ones counting for more than
their parts; `same_title`, `others_same_title`: share of all candidates' evidence that stands under the same title, with
and without this one (a document is about what several of its passages answer); `dense_alone`: `dense` as the first
stage has it, without sentences (for fitting that stage; it has no weight here).

Where the question can be said by the user's synonyms, each feature of words and pairs is what the better of the two
wordings gives, the other one's lead by the synonym's weight.
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


class _Words(msgspec.Struct, frozen=True):
    """The weights of a question's parts, by the rows of Held; each kind sums to 1."""

    terms: Floats
    neighbours: Floats
    """Of each term and the next, by the smaller of their weights."""
    pairs: Floats
    """None for those of grammar, which do not break a run."""
    row: Ints
    """All pairs as they follow each other."""
    characters: Floats


def features(question: RerankQuestion, candidates: Sequence[RerankPassage]) -> Floats:
    """Return a row of FEATURES for each candidate; does not depend on the order of the candidates."""
    if not candidates:
        return np.zeros((0, len(FEATURES)))
    found = _said(question, candidates)
    for variant in question.variants:
        reworded = msgspec.structs.replace(question, terms=variant.terms, bigrams=variant.bigrams)
        for name, other in _said(reworded, candidates).items():
            found[name] += variant.weight * np.maximum(0.0, other - found[name])
    found["bm25"] = _relative([one.signals.get("bm25") for one in candidates])
    found["dense"] = _relative([_likeness(one) for one in candidates])
    found["dense_alone"] = _relative([one.signals.get("dense") for one in candidates])
    found["dense_uncovered"] = found["dense"] * (1 - found["coverage"][found["bm25"] == found["bm25"].max()].max())
    evidence = np.round(sum((weight * found[name] for name, weight in _EVIDENCE), np.zeros(len(candidates))), 9)
    found["same_title"], found["others_same_title"] = _same_title([one.title for one in candidates], evidence)
    table = np.column_stack([found[name] for name in FEATURES])
    return np.asarray(np.round(np.clip(table, 0.0, 1.0), 9), np.float64)


def _likeness(candidate: RerankPassage) -> float | None:
    dense = candidate.signals.get("dense")
    return None if dense is None else dense + candidate.signals.get("sentence", dense)


def _said(question: RerankQuestion, candidates: Sequence[RerankPassage]) -> dict[str, Floats]:
    """Return the features that depend on how the question is put."""
    asked = asked_of(question)
    held = held_by(candidates, asked)
    words = _words(question, asked, held)
    found = _by_words(words, held) | _by_pairs(words, held)
    found["characters"] = _share(words.characters, held.characters)
    return found


def _words(question: RerankQuestion, asked: Asked, held: Held) -> _Words:
    terms = _rarity((held.body > 0) | (held.title > 0))
    counted = np.array([not GRAMMAR.fullmatch(pair) for pair in asked.pairs], np.bool_)
    pairs = np.zeros(len(counted))
    pairs[counted] = _rarity((held.pairs[counted] > 0) | (held.title_pairs[counted] > 0))
    return _Words(
        terms=terms,
        neighbours=np.minimum(terms[:-1], terms[1:]),
        pairs=pairs,
        row=np.array([asked.pairs[pair] for pair in question.bigrams if pair in asked.pairs], np.int64),
        characters=_rarity(held.characters),
    )


def _rarity(there: Flags) -> Floats:
    """Return the share of each row in the sum of inverse document frequencies."""
    n, found = there.shape[1], there.sum(axis=1)
    idf = [math.log(1 + (n - often + 0.5) / (often + 0.5)) for often in found.tolist()]
    return np.array(idf) / (math.fsum(idf) or 1.0)


def _share(weights: Floats, there: Flags | Floats) -> Floats:
    """Return for each candidate the weight of what is there, or of how far; in the order of rows, whatever columns."""
    return np.asarray((weights[:, None] * there).sum(axis=0), np.float64)


def _relative(scores: Sequence[float | None]) -> Floats:
    """Scale to 0..1 between worst and best; what was not found stands at 0."""
    there = [score for score in scores if score is not None]
    if not there:
        return np.zeros(len(scores))
    low, high = min(there), max(there)
    spread = high - low
    return np.array([0.0 if s is None else (s - low) / spread if spread else 1.0 for s in scores])


def _bm25(weights: Floats, counts: Ints, lengths: Ints, b: float) -> Floats:
    """Return the scores, 0 to below 1."""
    norms = _K1 * (1 - b + b * lengths / (lengths.mean() or 1.0))
    return _share(weights, counts / (counts + norms))


def _same_title(titles: Sequence[str], evidence: Floats) -> tuple[Floats, Floats]:
    """Return the share of the evidence under each one's title, and the others' part of it; no title is its own."""
    likely = np.exp(_SHARPNESS * (evidence - evidence.max()))
    total = math.fsum(likely)
    groups: dict[str | int, list[float]] = defaultdict(list)
    for n, title in enumerate(titles):
        groups[title or n].append(float(likely[n]))
    whole = np.array([math.fsum(groups[title or n]) for n, title in enumerate(titles)]) / total
    return whole, whole - likely / total


def _by_words(words: _Words, held: Held) -> dict[str, Floats]:
    """Return what the question's terms and their places tell."""
    in_title = held.title > 0
    scores = _bm25(words.terms, held.body + TITLE * held.title, held.lengths, _B)
    places, last = _last(held, len(words.terms))
    ordered, close = _near(words, held, places, last)
    return {
        "words": scores / (scores.max() or 1.0),
        "coverage": _share(words.terms, (held.body > 0) | in_title),
        "title": _share(words.terms, in_title),
        "window": _window(words, held, places, last),
        "order": ordered,
        "proximity": close,
    }


def _by_pairs(words: _Words, held: Held) -> dict[str, Floats]:
    """Return what its pairs of characters tell."""
    there = (held.pairs > 0) | (held.title_pairs > 0)
    counts = held.pairs + _TITLE_PAIRS * held.title_pairs
    lengths = held.lengths_in_pairs + _TITLE_PAIRS * held.title_lengths_in_pairs
    return {
        "bigrams": _share(words.pairs, there),
        "bigrams_bm25": _bm25(words.pairs, counts, lengths, _B_PAIRS),
        "run": _run(words, there),
    }


def _last(held: Held, number: int) -> tuple[Ints, Ints]:
    """Return each spot's place, far from those of other candidates, and that of each term's last spot up to there."""
    places = held.owners * (held.places.max(initial=0) + _WINDOW) + held.places
    last = np.full((number, len(places)), -_WINDOW)
    last[held.rows, np.arange(len(places))] = places
    return places, np.maximum.accumulate(last, axis=1)


def _window(words: _Words, held: Held, places: Ints, last: Ints) -> Floats:
    """Return the largest share of the question's weight within one stretch."""
    best = np.zeros(held.size)
    np.maximum.at(best, held.owners, _share(words.terms, places - last < _WINDOW))
    return best


def _near(words: _Words, held: Held, places: Ints, last: Ints) -> tuple[Floats, Floats]:
    """Return how many neighbours of the question follow each other here, and how near any two of its words stand."""
    number = len(words.terms)
    first, n = np.nonzero(places[1:] - last[:, :-1] <= _NEAR)
    n, gaps = n + 1, places[n + 1] - last[first, n]
    other = first != held.rows[n]
    first, n, gaps = first[other], n[other], gaps[other]
    least = np.full((number, number, held.size), np.inf)
    np.minimum.at(least, (first, held.rows[n], held.owners[n]), gaps)
    follows = np.arange(number - 1)
    ordered = (words.neighbours[:, None] / least[follows, follows + 1]).sum(axis=0)
    one, two = _couples(number)
    smaller = np.minimum(words.terms[one], words.terms[two])
    close = (smaller[:, None] / np.minimum(least[one, two], least[two, one]) ** 2).sum(axis=0)
    possible = math.fsum(words.neighbours) or 1.0
    return ordered / possible, np.minimum(1.0, close / possible)


@lru_cache(maxsize=64)
def _couples(number: int) -> tuple[Ints, Ints]:
    """Return the two rows of each couple of so many terms."""
    one, two = np.triu_indices(number, 1)
    return one, two


def _run(words: _Words, there: Flags) -> Floats:
    """Return how much of the question's pairs stands in unbroken rows: the root of the squares of their weights."""
    held = there[words.row]
    runs = np.cumsum(~held, axis=0)  # a pair that is not there begins the next one
    length, size = len(words.row) + 1, there.shape[1]
    sums = np.bincount(
        (runs + length * np.arange(size)).ravel(),
        (words.pairs[words.row][:, None] * held).ravel(),
        minlength=length * size,
    )
    return np.asarray(np.sqrt((sums.reshape(size, length).T ** 2).sum(axis=0)), np.float64)
