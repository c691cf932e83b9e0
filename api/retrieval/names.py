"""The names that records declare, as a table that a question is matched against."""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from pipeline.ports.state import DeclaredName, State

SHORTEST = 2
_STALENESS = 10
"""Unless the asker waits for a position, a table may be as old as ten times what reading it took: while
documents stream in, at most a tenth of the time goes into reading it again, and a small one is always new."""


class NameTable:
    """Declared names by their first two characters, longest first."""

    def __init__(self, declared: Sequence[DeclaredName]) -> None:
        """Index the names."""
        self._by_name: dict[str, list[DeclaredName]] = {}
        for one in declared:
            if len(one.name) >= SHORTEST:
                self._by_name.setdefault(one.name, []).append(one)
        self._lengths: dict[str, list[int]] = {}
        for length, head in sorted({(len(name), name[:SHORTEST]) for name in self._by_name}, reverse=True):
            self._lengths.setdefault(head, []).append(length)

    def of(self, name: str) -> Sequence[DeclaredName]:
        """Return the entities that have this very name (a `name_key`)."""
        return self._by_name.get(name, ())

    def matches(self, folded: str) -> list[tuple[int, int, Sequence[DeclaredName]]]:
        """Return the longest names in the folded text, left to right, without overlaps."""
        found: list[tuple[int, int, Sequence[DeclaredName]]] = []
        at = 0
        while at < len(folded) - 1:
            end = self._longest(folded, at)
            if end:
                found.append((at, end, self._by_name[folded[at:end]]))
            at = end or at + 1
        return found

    def _longest(self, folded: str, at: int) -> int:
        for length in self._lengths.get(folded[at : at + SHORTEST], ()):
            end = at + length
            if folded[at:end] in self._by_name and not (_inside(folded, at) or _inside(folded, end)):
                return end
        return 0


class _Entry(msgspec.Struct, frozen=True):
    revision: int
    read_at: float
    took: float
    table: NameTable


class Names:
    """Keeps the table of each generation, and reads it again when documents changed."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[str, _Entry] = {}
        self._lock = asyncio.Lock()

    async def table(self, state: State, generation: str, *, exact: bool) -> NameTable:
        """Return the table; with `exact` as of now, else perhaps a little older."""
        entry = self._entries.get(generation)
        if entry and not exact and time.monotonic() - entry.read_at < entry.took * _STALENESS:
            return entry.table
        async with self._lock:
            return await self._refresh(state, generation)

    async def _refresh(self, state: State, generation: str) -> NameTable:
        """Read again if any document was collected since."""
        started, revision = time.monotonic(), await state.revision(generation)
        entry = self._entries.get(generation)
        if entry is None or entry.revision != revision:
            table = await asyncio.to_thread(NameTable, await state.declared_names(generation))
            entry = _Entry(revision, started, time.monotonic() - started, table)
        self._entries = {generation: msgspec.structs.replace(entry, read_at=started)}
        return entry.table


def _inside(text: str, at: int) -> bool:
    """Say whether a word goes on across this place: ASCII codes, or a run of katakana."""
    if not 0 < at < len(text):
        return False
    left, right = text[at - 1], text[at]
    return (_code(left) and _code(right)) or (_katakana(left) and _katakana(right))


def _code(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "-_")


def _katakana(character: str) -> bool:
    return "ァ" <= character <= "ヺ" or character == "ー"
