"""The cache of model work in PostgreSQL."""

from collections.abc import Sequence

from pipeline.backends.postgres import PostgresDatabase
from pipeline.backends.sql_state.transaction import Transaction, marks, sliced, value_rows


class PostgresCache:
    """The Cache port over a table that may be emptied at any time."""

    def __init__(self, url: str, *, connections: int = 2) -> None:
        self._database = PostgresDatabase(url, connections=connections)

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return what is there."""

        def select(tx: Transaction) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for part in sliced(keys):
                rows = tx.execute(
                    f"SELECT key, value FROM cache WHERE kind = ? AND key IN ({marks(len(part))})",  # noqa: S608
                    (kind, *part),
                )
                found.update({key: bytes(value) for key, value in rows})
            return found

        return await self._database.look(select) if keys else {}

    async def put(self, kind: str, items: dict[str, bytes]) -> None:
        """Keep items."""
        # In one order, so that two writers of the same keys wait for each other instead of dead-locking.
        for keys in sliced(sorted(items)):
            sql = (
                f"INSERT INTO cache (kind, key, value) VALUES {value_rows(len(keys), 3)}"  # noqa: S608
                " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value"
            )
            given = [value for key in keys for value in (kind, key, items[key])]
            await self._database.look(lambda tx, sql=sql, given=given: tx.execute(sql, given))  # type: ignore[misc]

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()
