"""The Publishing port over any SqlDatabase: each method is one transaction."""

from collections.abc import Mapping, Sequence

from pipeline.backends.sql_state import name_changes, publishing
from pipeline.backends.sql_state.transaction import SqlDatabase
from pipeline.ports.publishing import Begun, Committed, DeclaredName, Finish, NameChange
from schemas.document import Manifest


class SqlPublishing:
    """See `pipeline.ports.publishing.Publishing` for what each method promises."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def begin(self, generation: str, documents: Sequence[str], writer: str, known: int) -> Begun:
        """Mark documents and return what stands."""
        return await self._database.write(lambda tx: publishing.begin(tx, generation, documents, writer, known))

    async def renew(self, generation: str, documents: Sequence[str], writer: str) -> None:
        """Mark documents again."""
        await self._database.write(lambda tx: publishing.mark(tx, generation, documents, writer))

    async def commit_declared(
        self, generation: str, manifests: Sequence[Manifest], declared: Mapping[str, Sequence[DeclaredName]], known: int
    ) -> Committed:
        """Compare and set, with names."""
        return await self._database.write(lambda tx: publishing.commit(tx, generation, manifests, declared, known))

    async def finish(
        self,
        generation: str,
        done: Sequence[Finish],
        revision: int,
        *,
        writer: str,
        stale: str,
        left: Sequence[str] = (),
    ) -> list[bool]:
        """End what still stands."""
        return await self._database.write(
            lambda tx: publishing.finish(tx, generation, done, revision, writer=writer, stale=stale, left=left)
        )

    async def unfinished(self, generation: str, documents: Sequence[str], *, announces: bool) -> set[str]:
        """Return pending ones."""
        return await self._database.look(lambda tx: publishing.unfinished(tx, generation, documents, announces))

    async def leftovers(self, generation: str, *, older_s: float, announces: bool, limit: int = 1000) -> list[str]:
        """Return what was left half done."""
        return await self._database.read(lambda tx: publishing.leftovers(tx, generation, older_s, announces, limit))

    async def unrefined(self, generation: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return what lacks vectors of sentences."""
        return await self._database.look(lambda tx: publishing.unrefined(tx, generation, after, limit))

    async def name_changes(self, generation: str, known: int) -> list[NameChange]:
        """Return changes above a number."""
        return await self._database.look(lambda tx: name_changes.above(tx, generation, known))

    async def unlooked(self, generation: str, limit: int = 1000) -> list[NameChange]:
        """Return changes to look up."""
        return await self._database.look(lambda tx: name_changes.unlooked(tx, generation, limit))

    async def looked_up(self, generation: str, changes: Sequence[NameChange]) -> None:
        """Note a look-up."""
        await self._database.write(lambda tx: name_changes.looked_up(tx, generation, changes))

    async def positions(self, documents: Sequence[str]) -> dict[str, str]:
        """Return positions of records."""
        return await self._database.look(lambda tx: publishing.positions(tx, documents))
