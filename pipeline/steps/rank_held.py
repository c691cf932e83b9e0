"""What candidates hold of a question, counted once for all features: in arrays with a column for each candidate."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.text.hashed import hashes_of
from pipeline.text.normalize import fold, matching_form
from pipeline.text.pairs import Pairs, packed_pairs
from pipeline.text.terms import bigrams

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Points = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

TITLE = 3
"""A word of the title counts as so many of the text."""
GRAMMAR = re.compile("[ぁ-ゖー]+")
_MOST_TERMS = 32
"""Of a question: more would cost time, and say nothing that these do not."""
_ABOVE_CODE_POINTS = 0x110003
_LAST_BITS = 0xFFFF
_MIXER = np.uint16(31_421)


class Asked(msgspec.Struct, frozen=True):
    """What is looked for in each candidate; all distinct, in the question's order."""

    terms: tuple[str, ...]
    pairs: dict[str, int]
    """Rows of the pairs of characters."""
    characters: tuple[str, ...]


class Held(msgspec.Struct, frozen=True):
    """What each of `size` candidates holds of the question, counted; of the rest only how much it is."""

    size: int
    owners: Ints
    """Whose the spots are, where the question's terms stand: in the order of candidates, there in reading order."""
    places: Ints
    """How many terms stand before each spot."""
    rows: Ints
    """Which term it is."""
    body: Ints
    """How often each term stands in the text."""
    title: Ints
    """The same of title and headings."""
    lengths: Ints
    """Terms, those of the title as often as they count."""
    pairs: Ints
    """How often each pair stands in the text."""
    title_pairs: Ints
    lengths_in_pairs: Ints
    title_lengths_in_pairs: Ints
    characters: Flags


def asked_of(question: RerankQuestion) -> Asked:
    """Return what to look for."""
    return Asked(
        terms=tuple(dict.fromkeys(question.terms[:_MOST_TERMS])),
        pairs=_rows(pair for pair in question.bigrams if len(pair) == 2),
        characters=tuple(dict.fromkeys(GRAMMAR.sub("", "".join(question.bigrams)))),
    )


def held_by(candidates: Sequence[RerankPassage], asked: Asked) -> Held:
    """Return what the candidates hold of it."""
    size = len(candidates)
    owners, places, rows, lengths = _spots(
        [one.terms for one in candidates], [one.title_terms for one in candidates], asked.terms
    )
    counted, inner = _counted(rows, owners, len(asked.terms), 2 * size), np.searchsorted(owners, size)
    texts = [_packed(one.bigrams).text for one in candidates]
    above = [_title_bigrams(one.title, tuple(one.headings)).text for one in candidates]
    in_pairs = (np.array([*map(len, texts), *map(len, above)]) + 1) // 3
    pairs = _counted_pairs((*texts, *above), in_pairs, asked.pairs)
    return Held(
        size=size,
        owners=owners[:inner],
        places=places[:inner],
        rows=rows[:inner],
        body=counted[:, :size],
        title=counted[:, size:],
        lengths=lengths[:size] + TITLE * lengths[size:],
        pairs=pairs[:, :size],
        title_pairs=pairs[:, size:],
        lengths_in_pairs=np.array([len(one.bigrams) for one in candidates]),
        title_lengths_in_pairs=in_pairs[size:],
        characters=_characters([f"{text} {title}" for text, title in zip(texts, above, strict=True)], asked),
    )


def _rows(items: Iterable[str]) -> dict[str, int]:
    return {item: row for row, item in enumerate(dict.fromkeys(items))}


def _spots(
    bodies: Sequence[Sequence[str]], titles: Sequence[Sequence[str]], terms: tuple[str, ...]
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return where terms stand (whose they are, bodies before titles; how many terms are before them there; their
    rows), and how many terms each one has."""
    above = np.fromiter(map(hash, chain.from_iterable(titles)), np.int64)  # a few each: at once
    numbers, asked = np.concatenate([*map(hashes_of, bodies), above]), hashes_of(terms)
    likely = np.flatnonzero(_slots_of(asked & _LAST_BITS).take(numbers & _LAST_BITS))
    at, rows = _among(likely, numbers[likely], asked)
    lengths = np.array([*map(len, bodies), *map(len, titles)])
    ends = np.cumsum(lengths)
    owners = np.searchsorted(ends, at, side="right")
    return owners, at - (ends - lengths)[owners], rows, lengths


def _slots_of(last_bits: npt.NDArray[Any]) -> Flags:
    """Return a table that tells of nearly all numbers, by their last bits, that they are not asked for."""
    slots = np.zeros(_LAST_BITS + 1, np.bool_)
    slots[last_bits] = True
    return slots


def _among(at: Ints, numbers: Ints, asked: Ints) -> tuple[Ints, Ints]:
    """Keep the places whose numbers are asked for; return also which of them each is."""
    order = np.argsort(asked)
    near = np.searchsorted(asked, numbers, sorter=order)
    near[near == len(asked)] = 0
    rows = order[near]
    same = asked[rows] == numbers
    return at[same], rows[same]


def _counted(rows: Ints, owners: Ints, number: int, size: int) -> Ints:
    """Count by row and candidate."""
    return np.bincount(rows * size + owners, minlength=number * size).reshape(number, size)


def _counted_pairs(texts: Sequence[str], lengths: Ints, wanted: dict[str, int]) -> Ints:
    """Count the wanted pairs in each text of so many pairs: all texts as one row of numbers."""
    first, second = _points(" ".join(filter(None, texts)))
    asked_first, asked_second = _points(" ".join(wanted))
    likely = np.flatnonzero(_slots_of(_mixed(asked_first, asked_second)).take(_mixed(first, second)))
    at, rows = _among(likely, _codes(first[likely], second[likely]), _codes(asked_first, asked_second))
    owners = np.searchsorted(np.cumsum(lengths), at, side="right")
    return _counted(rows, owners, len(wanted), len(texts))


def _points(pairs: str) -> tuple[Points, Points]:
    """Return the first and the second characters of a text of pairs, as numbers: of 16 bits where all are."""
    points: Points = np.frombuffer(pairs.encode("utf-16-le", "surrogatepass"), np.uint16)
    if len(points) != len(pairs):
        points = np.frombuffer(pairs.encode("utf-32-le", "surrogatepass"), np.uint32)
    return points[::3], points[1::3]


def _mixed(first: Points, second: Points) -> Points:
    """Return 16 bits that come from both."""
    return first.astype(np.uint16, copy=False) * _MIXER + second.astype(np.uint16, copy=False)


def _codes(first: Points, second: Points) -> Ints:
    """Return each pair as one number; each has its own."""
    return first.astype(np.int64) * _ABOVE_CODE_POINTS + second


def _characters(texts: Sequence[str], asked: Asked) -> Flags:
    found = chain.from_iterable([map(text.__contains__, asked.characters) for text in texts])
    shape = len(texts), len(asked.characters)
    return np.fromiter(found, np.bool_, math.prod(shape)).reshape(shape).T


def _packed(pairs: Sequence[str]) -> Pairs:
    """Return the pairs as one text; what is no pair is no character of it either."""
    packed = packed_pairs(pairs)
    return packed if isinstance(packed, Pairs) else Pairs(" ".join(p for p in pairs if len(p) == 2 and " " not in p))


@lru_cache(maxsize=4_096)
def _title_bigrams(title: str, headings: tuple[str, ...]) -> Pairs:
    """Remembered: candidates of one document share them, and folding is what takes the time."""
    return _packed(bigrams(matching_form(fold("\n".join((title, *headings)))[0])))
