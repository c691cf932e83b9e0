"""The cache of model work in SQLite."""

from collections.abc import Sequence
from pathlib import Path

import apsw

from pipeline.backends.sqlite import Database

TABLE = "CREATE TABLE cache (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
SLICE = 500


def _relaxed(connection: apsw.Connection) -> None:
    connection.pragma("synchronous", "normal")  # losing the last entries in a power loss costs time only


class SqliteCache:
    """The Cache port over a file of its own, which may be deleted while nothing runs."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, TABLE, setup=_relaxed)

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return what is there."""

        def select(connection: apsw.Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            for start in range(0, len(keys), SLICE):
                part = keys[start : start + SLICE]
                marks = ", ".join("?" * len(part))
                rows = connection.execute(
                    f"SELECT key, value FROM cache WHERE kind = ? AND key IN ({marks})",  # noqa: S608
                    (kind, *part),
                )
                found.update({key: bytes(value) for key, value in rows})
            return found

        return await self._database.read(select) if keys else {}

    async def put(self, kind: str, items: dict[str, bytes]) -> None:
        """Keep items."""
        rows = [(kind, key, value) for key, value in items.items()]
        if rows:
            await self._database.write(
                lambda connection: connection.executemany(
                    "INSERT INTO cache (kind, key, value) VALUES (?, ?, ?)"
                    " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
                    rows,
                )
            )

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()
