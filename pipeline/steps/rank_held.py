"""What candidates hold of a question, counted once for all features: in arrays with a column for each candidate."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

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

TITLE = 3
"""A word of the title counts as so many of the text."""
GRAMMAR = re.compile("[ぁ-ゖー]+")
_MOST_TERMS = 32
"""Of a question: more would cost time, and say nothing that these do not."""
_ABOVE_CODE_POINTS = 0x110003
_SLOTS = 1 << 16


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
    bodies, titles = [one.terms for one in candidates], [one.title_terms for one in candidates]
    owners, places, rows = _spots(bodies, asked.terms)
    title_owners, _, title_rows = _spots(titles, asked.terms)
    texts = [_packed(one.bigrams) for one in candidates]
    above = [_title_bigrams(one.title, tuple(one.headings)) for one in candidates]
    lengths = [len(text) for text in (*texts, *above)]
    pairs = _counted_pairs([text.text for text in (*texts, *above)], lengths, asked.pairs)
    return Held(
        size=size,
        owners=owners,
        places=places,
        rows=rows,
        body=_counted(rows, owners, len(asked.terms), size),
        title=_counted(title_rows, title_owners, len(asked.terms), size),
        lengths=np.array(list(map(len, bodies))) + TITLE * np.array(list(map(len, titles))),
        pairs=pairs[:, :size],
        title_pairs=pairs[:, size:],
        lengths_in_pairs=np.array([len(one.bigrams) for one in candidates]),
        title_lengths_in_pairs=np.array(lengths[size:]),
        characters=_characters([f"{text.text} {title.text}" for text, title in zip(texts, above, strict=True)], asked),
    )


def _rows(items: Iterable[str]) -> dict[str, int]:
    return {item: row for row, item in enumerate(dict.fromkeys(items))}


def _spots(texts: Sequence[Sequence[str]], terms: tuple[str, ...]) -> tuple[Ints, Ints, Ints]:
    """Return where terms stand: whose they are, how many terms are before them there, and their rows."""
    at, rows = _found(np.concatenate([hashes_of(text) for text in texts]), hashes_of(terms))
    lengths = np.array(list(map(len, texts)))
    ends = np.cumsum(lengths)
    owners = np.searchsorted(ends, at, side="right")
    return owners, at - (ends - lengths)[owners], rows


def _found(numbers: Ints, asked: Ints) -> tuple[Ints, Ints]:
    """Return where asked numbers stand among many, in order, and which of them.

    Their last bits tell of nearly all others that they are not asked for; what is left is looked up.
    """
    likely = np.zeros(_SLOTS, np.bool_)
    likely[asked & (_SLOTS - 1)] = True
    at = np.flatnonzero(likely[numbers & (_SLOTS - 1)])
    order = np.argsort(asked)
    near = np.searchsorted(asked, numbers[at], sorter=order)
    near[near == len(asked)] = 0
    rows = order[near]
    same = asked[rows] == numbers[at]
    return at[same], rows[same]


def _counted(rows: Ints, owners: Ints, number: int, size: int) -> Ints:
    """Count by row and candidate."""
    return np.bincount(rows * size + owners, minlength=number * size).reshape(number, size)


def _counted_pairs(texts: Sequence[str], lengths: Sequence[int], wanted: dict[str, int]) -> Ints:
    """Count the wanted pairs in each text of so many pairs: all texts as one row of numbers."""
    at, rows = _found(_codes(" ".join(filter(None, texts))), _codes(" ".join(wanted)))
    owners = np.searchsorted(np.cumsum(lengths), at, side="right")
    return _counted(rows, owners, len(wanted), len(texts))


def _codes(pairs: str) -> Ints:
    """Return each pair of a text of pairs as one number; each has its own, and its last bits come from both."""
    points = np.frombuffer(pairs.encode("utf-32-le", "surrogatepass"), np.uint32)
    return points[::3].astype(np.int64) * _ABOVE_CODE_POINTS + points[1::3]


def _characters(texts: Sequence[str], asked: Asked) -> Flags:
    found = [[character in text for text in texts] for character in asked.characters]
    return np.array(found, np.bool_).reshape(len(found), len(texts))


def _packed(pairs: Sequence[str]) -> Pairs:
    """Return the pairs as one text; what is no pair is no character of it either."""
    packed = packed_pairs(pairs)
    return packed if isinstance(packed, Pairs) else Pairs(" ".join(p for p in pairs if len(p) == 2 and " " not in p))


@lru_cache(maxsize=4_096)
def _title_bigrams(title: str, headings: tuple[str, ...]) -> Pairs:
    """Remembered: candidates of one document share them, and folding is what takes the time."""
    return _packed(bigrams(matching_form(fold("\n".join((title, *headings)))[0])))
