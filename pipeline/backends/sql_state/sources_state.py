"""The Sources port over any SqlDatabase: each method is one transaction."""

from collections.abc import Mapping, Sequence

from pipeline.backends.sql_state import sources
from pipeline.backends.sql_state.transaction import SqlDatabase
from pipeline.ports.sources import EpochStart, SourceHead, SourceNote


class SqlSources:
    """See `pipeline.ports.sources.Sources` for what each method promises."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def epochs(self) -> list[EpochStart]:
        """Return all epochs."""
        return await self._database.look(sources.epochs)

    async def new_epoch(self, source: str, starts: Mapping[str, int], at: str) -> int:
        """Begin the next epoch."""
        return await self._database.write(lambda tx: sources.new_epoch(tx, source, starts, at))

    async def note_sources(self, notes: Sequence[SourceNote], reconciled: Mapping[str, int]) -> None:
        """Raise heads and offsets."""
        await self._database.write(lambda tx: sources.note(tx, notes, reconciled))

    async def source_heads(self, source: str = "") -> list[SourceHead]:
        """Return heads."""
        return await self._database.look(lambda tx: sources.heads(tx, source))

    async def reconciled(self, places: Sequence[str]) -> dict[str, int]:
        """Return offsets."""
        return await self._database.look(lambda tx: sources.reconciled(tx, places))
