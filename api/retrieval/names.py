"""The names that records declare, kept as the index by which texts and questions alike are matched."""

import asyncio
import time

import msgspec

from pipeline.ports.state import State
from pipeline.steps.name_index import NameIndex

_STALENESS = 10
"""Unless the asker waits for a position, an index may be as old as ten times what reading it took: while
documents stream in, at most a tenth of the time goes into reading it again, and a small one is always new."""


class _Entry(msgspec.Struct, frozen=True):
    revision: int
    read_at: float
    took: float
    index: NameIndex


class Names:
    """Keeps the live generation's index, and builds it again when documents changed."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[str, _Entry] = {}
        self._lock = asyncio.Lock()

    async def index(self, state: State, generation: str, *, exact: bool) -> NameIndex:
        """Return the index; with `exact` as of now, else perhaps a little older."""
        entry = self._entries.get(generation)
        if entry and not exact and time.monotonic() - entry.read_at < entry.took * _STALENESS:
            return entry.index
        async with self._lock:
            return await self._refresh(state, generation)

    async def _refresh(self, state: State, generation: str) -> NameIndex:
        """Read again if any document was collected since."""
        started, revision = time.monotonic(), await state.revision(generation)
        entry = self._entries.get(generation)
        if entry is None or entry.revision != revision:
            index = await asyncio.to_thread(NameIndex, await state.declared_names(generation))
            entry = _Entry(revision, started, time.monotonic() - started, index)
        self._entries = {generation: msgspec.structs.replace(entry, read_at=started)}
        return entry.index
