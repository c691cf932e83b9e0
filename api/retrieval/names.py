"""The names that records declare, kept as the index by which texts and questions alike are matched."""

import asyncio
import time

import msgspec

from pipeline.ports.state import State
from pipeline.steps.name_index import NameIndex

_STALENESS = 10
"""Unless the asker waits for a position, an index may be as old as ten times what looking for changes took."""


class _Entry(msgspec.Struct):
    number: int
    """Of the last change that is in the index."""
    looked_at: float
    took: float
    index: NameIndex


class Names:
    """Keeps the live generation's index, and brings it up to date by the numbered changes of names."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[str, _Entry] = {}
        self._lock = asyncio.Lock()

    async def index(self, state: State, generation: str, *, exact: bool) -> NameIndex:
        """Return the index; with `exact` as of now, else perhaps a little older."""
        entry = self._entries.get(generation)
        if entry and not exact and time.monotonic() - entry.looked_at < entry.took * _STALENESS:
            return entry.index
        async with self._lock:
            return await self._refresh(state, generation)

    async def _refresh(self, state: State, generation: str) -> NameIndex:
        started = time.monotonic()
        entry = self._entries.get(generation)
        if entry is None:
            # The number first: a change that comes in between is in the names, and is made again without harm.
            changes = await state.name_changes(generation, 0)
            index = await asyncio.to_thread(NameIndex, await state.declared_names(generation))
            entry = _Entry(max((change.number for change in changes), default=0), started, 0.0, index)
        else:
            for change in await state.name_changes(generation, entry.number):
                entry.index.replace(change.name, change.entities)
                entry.number = max(entry.number, change.number)
        entry.looked_at, entry.took = started, time.monotonic() - started
        self._entries = {generation: entry}
        return entry.index
