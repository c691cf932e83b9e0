"""The change log as an append-only table."""

from collections.abc import Sequence

import apsw
import msgspec

from pipeline.backends.sqlite import Database
from pipeline.ports.change_log import LoggedEvent
from schemas.change_event import RawEvent


class SqliteChangeLog:
    """The ChangeLog port over the `log` table of `open_state_database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, events: Sequence[RawEvent], received_at: str) -> list[int]:
        """Append all or none."""

        def insert(connection: apsw.Connection) -> list[int]:
            offsets = []
            for event in events:
                connection.execute(
                    "INSERT INTO log (value, key, headers, topic, lane, received_at) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        event.value,
                        event.key,
                        msgspec.json.encode(event.headers).decode(),
                        event.topic,
                        event.lane,
                        received_at,
                    ),
                )
                offsets.append(connection.last_insert_rowid())
            return offsets

        return await self._database.write(insert) if events else []

    async def read(self, after: int, limit: int) -> list[LoggedEvent]:
        """Return events behind an offset."""

        def select(connection: apsw.Connection) -> list[LoggedEvent]:
            rows = connection.execute(
                'SELECT "offset", value, key, headers, topic, lane, received_at FROM log'
                ' WHERE "offset" > ? ORDER BY "offset" LIMIT ?',
                (after, limit),
            )
            return [
                LoggedEvent(
                    offset,
                    RawEvent(value=value, key=key, headers=msgspec.json.decode(headers), topic=topic, lane=lane),
                    received_at,
                )
                for offset, value, key, headers, topic, lane, received_at in rows
            ]

        return await self._database.read(select)

    async def end(self) -> int:
        """Return the last offset."""

        def select(connection: apsw.Connection) -> int:
            rows: list[tuple[int]] = connection.execute('SELECT coalesce(max("offset"), 0) FROM log').fetchall()  # type: ignore[assignment]
            return rows[0][0]

        return await self._database.read(select)
