"""Other ways of writing known words, as `ops.sudachi_spellings` found them: 書込, ペースメーカ, データ・ベース."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import msgspec

_TEXT = files("schemas").joinpath("synonyms/spellings.tsv").read_text("utf-8")

SPELLINGS_VERSION = hashlib.sha256(_TEXT.encode()).hexdigest()[:6]
"""Changes with the table: part of every analyzer version."""

SEPARATOR = "・"
SEPARATORS = frozenset("・=＝ ")
"""What may stand between the parts of a word in katakana."""
_KATAKANA = re.compile("[ァ-ヺー]+")
_MOST_PARTS = 3
LONGEST = 2 * _MOST_PARTS - 1
"""Morphemes of one word: its parts and what stands between them."""


class Whole(msgspec.Struct, frozen=True):
    """A word that is written in parts."""

    term: str
    start: int
    """Number of its first morpheme."""
    end: int
    """Number of the morpheme behind it."""
    parts: tuple[str, ...]
    """The terms of the parts that count beside it: of words in katakana, not 書 and 込み of 書込."""


class Spellings(NamedTuple):
    """The table. Immutable."""

    words: dict[str, str]
    """Terms that have another usual form."""
    wholes: dict[tuple[str, ...], str]
    """Terms in a row, and the one term that they spell."""
    opening: dict[str, frozenset[str]]
    """The first of these, and what may follow each."""

    def whole(self, following: Iterable[tuple[str, str]], at: int) -> Whole | None:
        """Return the longest word that the terms (with their surfaces) of morphemes from number `at` on spell."""
        parts: tuple[str, ...] = ()
        found: Whole | None = None
        for number, (term, surface) in enumerate(following, at + 1):
            if parts and surface in SEPARATORS and _KATAKANA.fullmatch(parts[-1]):
                continue
            parts = (*parts, term)
            if whole := self.wholes.get(parts):
                found = Whole(whole, at, number, parts if _KATAKANA.fullmatch("".join(parts)) else ())
            if not term or len(parts) >= _MOST_PARTS:
                break
        return found


@lru_cache(maxsize=1)
def spellings() -> Spellings:
    """Read the table (35,000 lines, about 50 ms)."""
    words: dict[str, str] = {}
    wholes: dict[tuple[str, ...], str] = {}
    for line in _TEXT.splitlines():
        spelled, _, term = line.partition("\t")
        parts = tuple(spelled.split(" "))
        if len(parts) == 1:
            words[spelled] = term
        elif parts[0]:
            wholes[parts] = term
    wholes = {tuple(words.get(part, part) for part in parts): term for parts, term in wholes.items()}
    opening: dict[str, set[str]] = defaultdict(set)
    for first, second, *_ in wholes:
        opening[first] |= {second, SEPARATOR} if _KATAKANA.fullmatch(first) else {second}
    return Spellings(words, wholes, {first: frozenset(after) for first, after in opening.items()})
