"""The GenerationRows port over any SqlDatabase: each method is one transaction."""

from pipeline.backends.sql_state import generations
from pipeline.backends.sql_state.transaction import SqlDatabase
from pipeline.ports.generations import Behind, Generation, Promotion, Rebuild, Standing


class SqlGenerations:
    """See `pipeline.ports.generations.GenerationRows` for what each method promises."""

    _database: SqlDatabase
    _embedders: dict[str, str | None]
    """By generation, as they were read once."""

    async def generations(self) -> list[Generation]:
        """Return generations."""
        return await self._database.look(generations.generations)

    async def next_generation(self) -> str:
        """Return a new name."""
        return await self._database.read(generations.next_name)

    async def create_generation(self, generation: Generation, rebuild: Rebuild | None = None) -> None:
        """Add a generation."""
        await self._database.write(lambda tx: generations.create(tx, generation, rebuild))

    async def promote(self, name: str, at: str = "", *, unless_older: bool = False) -> list[str]:
        """Switch the live generation."""
        return await self._database.write(lambda tx: generations.promote(tx, name, at, unless_older))

    async def promotions(self) -> list[Promotion]:
        """Return what became live."""
        return await self._database.look(generations.promotions)

    async def begin_prune(self, name: str) -> None:
        """Let nobody use it."""
        await self._database.write(lambda tx: generations.begin_prune(tx, name))

    async def drop_generation(self, name: str) -> None:
        """Forget a generation."""
        await self._database.write(lambda tx: generations.drop(tx, name))

    async def set_versions(self, name: str, versions: dict[str, str]) -> None:
        """Replace the versions."""
        await self._database.write(lambda tx: generations.set_versions(tx, name, versions))
        self._embedders = {}

    async def embedder(self, name: str) -> str | None:
        """Return the model of a generation."""
        if name not in self._embedders:
            self._embedders = {g.name: g.versions.get("embedder") for g in await self.generations()}
        return self._embedders.get(name)

    async def rebuild(self, name: str) -> Rebuild | None:
        """Return the note of a rebuild."""
        return await self._database.look(lambda tx: generations.rebuild(tx, name))

    async def save_rebuild(self, name: str, rebuild: Rebuild) -> None:
        """Replace the note of a rebuild."""
        await self._database.write(lambda tx: generations.save_rebuild(tx, name, rebuild))

    async def standing(self, name: str) -> Standing:
        """Count."""
        return await self._database.look(lambda tx: generations.standing(tx, name))

    async def behind(self, name: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> list[Behind]:
        """Return a page of what it lacks."""
        return await self._database.look(lambda tx: generations.behind(tx, name, prefix, after, limit))
