"""Identifiers: codes, versions, error names and numbers that must be found whole and exactly."""

import hashlib
import re
from collections.abc import Iterator, Sequence

import msgspec

from pipeline.text.normalize import fold, source_span
from schemas.knowledge import Mention

_LONGEST = 128
"""A piece never is longer, so that even a pattern of cubic cost stays in milliseconds."""
_BEFORE, _AFTER = r"(?<![0-9a-z_])(?<![0-9a-z_]-)", r"(?![0-9a-z_]|-[0-9a-z]|\.[0-9])"
_PIECE = re.compile(r"[0-9a-z._/+#:@=&%-]{2,}")
_SMALLER_PIECE = re.compile(r"[0-9a-z._-]{2,}")
_REMEMBERED = 50_000
_WIDE_PIECE = re.compile(r"[^\s、。!?「」『』]+")


class IdentifierPattern(msgspec.Struct, frozen=True, array_like=True):
    """One pattern of a patterns file."""

    name: str
    pattern: str
    type: str = ""
    """Class of what it names; empty when unknown."""


class Identifier(msgspec.Struct, frozen=True, array_like=True):
    """An identifier in a text: offsets there, and its normalized form."""

    start: int
    end: int
    key: str
    """Folded: `f-17` for F-17, Ｆ－１７, f‐17."""
    name: str
    type: str = ""


class _Compiled(msgspec.Struct, frozen=True):
    rank: int
    pattern: IdentifierPattern
    expression: re.Pattern[str]


class Identifiers:
    """Compiled patterns, the user's before the product's. Immutable and safe to share between threads."""

    def __init__(self, patterns: Sequence[IdentifierPattern]) -> None:
        """Compile; raises `re.error` on a bad pattern (`read_identifiers` checks files with file and line)."""
        self.patterns = tuple(patterns)
        compiled = [_Compiled(rank, p, compile_pattern(p.pattern)) for rank, p in enumerate(patterns)]
        self._narrow = [c for c in compiled if c.pattern.pattern.isascii()]
        self._known: dict[str, tuple[Identifier, ...]] = {}
        self._wide = [c for c in compiled if not c.pattern.pattern.isascii()]

    @property
    def version(self) -> str:
        """Eight hex digits that change with any pattern."""
        return hashlib.sha256(msgspec.json.encode(self.patterns)).hexdigest()[:8]

    def find(self, text: str) -> list[Identifier]:
        """Return the identifiers of a text in reading order, none overlapping; offsets in `text`."""
        folded, offsets = fold(text)
        return [
            Identifier(*source_span(offsets, i.start, i.end), i.key, i.name, i.type) for i in self.find_folded(folded)
        ]

    def find_folded(self, folded: str) -> list[Identifier]:
        """Like `find` on text that `fold` gave; offsets in the folded text."""
        found = [
            Identifier(start + i.start, start + i.end, i.key, i.name, i.type)
            for start, piece in _pieces(folded)
            for i in self._in_piece(piece)
        ]
        if not self._wide:
            return found
        wide = [m for start, end in _windows(folded) for m in _matches(self._wide, folded, start, end)]
        return _choose([*wide, *((len(self.patterns), i) for i in found)]) if wide else found

    def _in_piece(self, piece: str) -> tuple[Identifier, ...]:
        """Pieces repeat in a corpus (years, amounts, codes): what was found in one is kept."""
        known = self._known.get(piece)
        if known is None:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            known = self._known[piece] = tuple(_choose(_matches(self._narrow, piece, 0, len(piece))))
        return known


def as_mentions(found: Sequence[Identifier], text: str) -> tuple[Mention, ...]:
    """Return identifiers as mentions of family `id`; `text` is what they were found in."""
    return tuple(Mention(i.start, i.end, text[i.start : i.end], "id", i.key, "identifier", 1.0) for i in found)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile one pattern with the boundaries that every identifier has. Raises `re.error`."""
    return re.compile(f"{_BEFORE}(?:{pattern}){_AFTER}", re.IGNORECASE)


def _pieces(folded: str) -> Iterator[tuple[int, str]]:
    """ASCII runs that may hold an identifier: not words of letters alone, not longer than allowed."""
    for match in _PIECE.finditer(folded):
        piece = match.group()
        if piece.isalpha():
            continue
        if len(piece) <= _LONGEST:
            yield match.start(), piece
            continue
        for smaller in _SMALLER_PIECE.finditer(piece):
            if smaller.end() - smaller.start() <= _LONGEST and not smaller.group().isalpha():
                yield match.start() + smaller.start(), smaller.group()


def _windows(folded: str) -> Iterator[tuple[int, int]]:
    """Pieces for patterns that hold Japanese; long ones in halves that overlap."""
    for match in _WIDE_PIECE.finditer(folded):
        start, end = match.span()
        while end - start > _LONGEST:
            yield start, start + _LONGEST
            start += _LONGEST // 2
        yield start, end


def _matches(patterns: list[_Compiled], folded: str, start: int, end: int) -> list[tuple[int, Identifier]]:
    return [
        (c.rank, Identifier(m.start(), m.end(), m.group(), c.pattern.name, c.pattern.type))
        for c in patterns
        for m in c.expression.finditer(folded, start, end)
        if m.end() > m.start()
    ]


def _choose(found: list[tuple[int, Identifier]]) -> list[Identifier]:
    """Where matches overlap, the longest wins, and among equals the first pattern (the user's come first)."""
    found.sort(key=lambda f: f[1].start)
    chosen: list[Identifier] = []
    group: list[tuple[int, Identifier]] = []
    group_end = -1
    for one in found:
        if one[1].start >= group_end:
            chosen += _best_of(group)
            group = []
        group.append(one)
        group_end = max(group_end, one[1].end)
    return chosen + _best_of(group)


def _best_of(group: list[tuple[int, Identifier]]) -> list[Identifier]:
    if len(group) < 2:
        return [identifier for _, identifier in group]
    best: list[Identifier] = []
    for _, one in sorted(group, key=lambda f: (f[1].start - f[1].end, f[0], f[1].start)):
        if all(one.end <= other.start or one.start >= other.end for other in best):
            best.append(one)
    return sorted(best, key=lambda i: i.start)
