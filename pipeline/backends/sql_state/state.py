"""The State port over any SqlDatabase: each method is one transaction."""

from collections.abc import AsyncIterator, Mapping, Sequence

from pipeline.backends.decoded import DecodedCache
from pipeline.backends.sql_state import generations, manifests, names, outcomes, records
from pipeline.backends.sql_state.generation_state import SqlGenerations
from pipeline.backends.sql_state.publishing_state import SqlPublishing
from pipeline.backends.sql_state.sources_state import SqlSources
from pipeline.backends.sql_state.transaction import SqlDatabase
from pipeline.ports.state import Advance, CollectionState, DeclaredName, Pending
from schemas.access import AccessRule
from schemas.document import Manifest
from schemas.outcome import DeadLetter, Outcome, OutcomeName
from schemas.record import Record

PAGE = 500
RECORDS_PAGE = 100
"""A record may be as large as an event."""
MANIFESTS_IN_MEMORY = 4 << 20
"""Bytes of rows that stay decoded: some 8,000 manifests, which take about 20 MiB."""


class SqlState(SqlPublishing, SqlGenerations, SqlSources):
    """See `pipeline.ports.state.State` for what each method promises."""

    def __init__(self, database: SqlDatabase) -> None:
        super().__init__(database)
        self._embedders = {}
        self._manifest = DecodedCache(manifests.decode, MANIFESTS_IN_MEMORY)

    async def collection(self, source: str, collection: str, *, positioned: bool) -> CollectionState:
        """Return the collection's row."""
        return await self._database.write(lambda tx: records.collection(tx, source, collection, positioned))

    async def collections(self) -> list[CollectionState]:
        """Return all rows."""
        return await self._database.look(records.collections)

    async def set_floor(self, source: str, collection: str, floor: str, version: str, occurred_at: str) -> None:
        """Raise the floor."""
        await self._database.write(lambda tx: records.set_floor(tx, source, collection, floor, version, occurred_at))

    async def advance(self, offered: Sequence[Record]) -> list[Advance]:
        """Offer records."""
        return await self._database.write(lambda tx: records.advance(tx, offered))

    async def records(self, documents: Sequence[str]) -> dict[str, Record]:
        """Return rows that exist."""
        return await self._database.look(lambda tx: records.get(tx, documents))

    async def scan_records(self, prefix: str = "") -> AsyncIterator[Record]:
        """Yield records in key order."""
        after = ""
        while page := await self._database.look(lambda tx, after=after: records.page(tx, prefix, after, RECORDS_PAGE)):  # type: ignore[misc]
            for record in page:
                yield record
            after = page[-1].document

    async def pending(self, generation: str, *, after: str = "", limit: int = 1000) -> list[Pending]:
        """Return documents that need work."""
        return await self._database.look(lambda tx: manifests.pending(tx, generation, after, limit))

    async def manifests(self, generation: str, documents: Sequence[str]) -> dict[str, Manifest]:
        """Return committed manifests."""
        return await self._database.look(lambda tx: manifests.get(tx, generation, documents, self._manifest))

    async def commit(self, generation: str, offered: Sequence[Manifest]) -> list[bool]:
        """Compare and set."""
        return await self._database.write(lambda tx: manifests.commit(tx, generation, offered))

    async def collected(self, generation: str, done: Sequence[tuple[str, str]], revision: int) -> None:
        """Mark as collected."""
        await self._database.write(lambda tx: manifests.collected(tx, generation, done, revision))

    async def settled(self, generation: str, documents: Sequence[str]) -> dict[str, str]:
        """Return settled positions."""
        return await self._database.look(lambda tx: manifests.settled(tx, generation, documents))

    async def stages(self, generation: str, documents: Sequence[str]) -> dict[str, str]:
        """Return committed stages."""
        return await self._database.look(lambda tx: manifests.stages(tx, generation, documents))

    async def uncollect_after(self, generation: str, revision: int) -> int:
        """Put manifests back to work."""
        return await self._database.write(lambda tx: manifests.uncollect_after(tx, generation, revision))

    async def collected_manifests(self, generation: str, *, after: str = "", limit: int = 1000) -> list[Manifest]:
        """Return a page of collected manifests."""
        return await self._database.look(lambda tx: manifests.collected_page(tx, generation, after, limit))

    async def uncollect(self, generation: str, broken: Mapping[str, Sequence[Manifest]]) -> dict[str, list[str]]:
        """Put manifests back to work."""
        return await self._database.write(lambda tx: manifests.uncollect(tx, generation, broken))

    async def revision(self, generation: str) -> int:
        """Return the highest revision."""
        return await self._database.look(lambda tx: manifests.revision(tx, generation))

    async def scan_manifests(self, generation: str) -> AsyncIterator[Manifest]:
        """Yield manifests in key order."""
        after = ""
        while page := await self._database.look(lambda tx, after=after: manifests.page(tx, generation, after, PAGE)):  # type: ignore[misc]
            for manifest in page:
                yield manifest
            after = page[-1].document

    async def counts(self, generation: str) -> dict[str, int]:
        """Count."""
        return await self._database.read(lambda tx: manifests.counts(tx, generation) | outcomes.counts(tx))

    async def replace_names(self, generation: str, declared: Mapping[str, Sequence[DeclaredName]]) -> list[str]:
        """Replace documents' names."""
        return await self._database.write(lambda tx: names.replace(tx, generation, declared))

    async def declared_names(self, generation: str) -> list[DeclaredName]:
        """Return distinct names."""
        return await self._database.look(lambda tx: names.declared(tx, generation))

    async def mark_relinks(self, generation: str, documents: Sequence[str]) -> None:
        """Mark for relinking."""
        await self._database.write(lambda tx: manifests.mark_relinks(tx, generation, documents))

    async def clear_relinks(self, generation: str, documents: Sequence[str]) -> None:
        """Remove marks."""
        await self._database.write(lambda tx: manifests.clear_relinks(tx, generation, documents))

    async def announce(self, ended: Sequence[Outcome]) -> None:
        """Record outcomes."""
        await self._database.write(lambda tx: outcomes.announce(tx, ended))

    async def outcomes(self, events: Sequence[str]) -> dict[str, OutcomeName]:
        """Return outcomes known."""
        return await self._database.look(lambda tx: outcomes.get(tx, events))

    async def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Keep dead letters."""
        await self._database.write(lambda tx: outcomes.bury(tx, letters))

    async def dead_letters(self, *, after: str = "", limit: int = 100, resolved: bool = False) -> list[DeadLetter]:
        """Return letters."""
        return await self._database.look(lambda tx: outcomes.dead_letters(tx, after, limit, resolved))

    async def dead_letter(self, letter: str) -> DeadLetter | None:
        """Return one letter."""
        return await self._database.look(lambda tx: outcomes.dead_letter(tx, letter))

    async def dead_positions(self, documents: Sequence[str]) -> dict[str, list[DeadLetter]]:
        """Return open letters of documents."""
        return await self._database.look(lambda tx: outcomes.dead_positions(tx, documents))

    async def resolve(self, letters: Sequence[str], generation: str = "") -> None:
        """Mark letters resolved."""
        await self._database.write(lambda tx: outcomes.resolve(tx, letters, generation))

    async def outlived(self, done: Sequence[tuple[str, str]]) -> None:
        """Resolve letters that applied versions have made moot."""
        await self._database.write(lambda tx: outcomes.outlived(tx, done))

    async def offset(self, consumer: str) -> int:
        """Return a committed offset."""
        return await self._database.look(lambda tx: generations.offset(tx, consumer))

    async def commit_offset(self, consumer: str, offset: int) -> None:
        """Raise an offset."""
        await self._database.write(lambda tx: generations.commit_offset(tx, consumer, offset))

    async def remember_classes(self, rules: Sequence[AccessRule]) -> None:
        """Keep rules."""
        await self._database.write(lambda tx: generations.remember_classes(tx, rules))

    async def access_classes(self) -> dict[str, AccessRule]:
        """Return all classes."""
        return await self._database.look(generations.access_classes)
