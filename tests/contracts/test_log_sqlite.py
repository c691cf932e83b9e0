"""The change log in SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.backends.log_sqlite import SqliteChangeLog
from pipeline.backends.state_sqlite import open_state_database
from tests.contracts.change_log import NOW, ChangeLogContract, raws


class TestSqliteChangeLog(ChangeLogContract):
    @pytest.fixture
    async def log(self, tmp_path: Path) -> AsyncIterator[SqliteChangeLog]:
        database = open_state_database(tmp_path)
        yield SqliteChangeLog(database)
        await database.close()

    async def test_is_there_after_a_restart(self, tmp_path: Path) -> None:
        for expected in ([1], [2]):
            database = open_state_database(tmp_path)
            log = SqliteChangeLog(database)
            assert await log.append(raws("a"), NOW) == expected
            assert [e.offset for e in await log.read(0, 10)] == list(range(1, expected[0] + 1))
            await database.close()
