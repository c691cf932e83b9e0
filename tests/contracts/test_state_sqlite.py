"""The state store in SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.backends.state_sqlite import open_state_database, sqlite_state
from pipeline.errors import BackendUnavailable
from pipeline.ports.state import State
from tests.contracts.examples import DOCUMENT, record
from tests.contracts.state import StateContract


class TestSqliteState(StateContract):
    @pytest.fixture
    async def state(self, tmp_path: Path) -> AsyncIterator[State]:
        database = open_state_database(tmp_path)
        yield sqlite_state(database)
        await database.close()

    async def test_is_there_after_a_restart(self, tmp_path: Path) -> None:
        for ordinal in (1, 2):
            database = open_state_database(tmp_path)
            (result,) = await sqlite_state(database).advance([record(DOCUMENT, ordinal)])
            assert result.result == "advanced"
            await database.close()

    async def test_a_closed_store_is_unavailable(self, tmp_path: Path) -> None:
        database = open_state_database(tmp_path)
        await database.close()
        with pytest.raises(BackendUnavailable):
            await sqlite_state(database).collections()
