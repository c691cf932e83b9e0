"""A real state store for the tests of the pipeline's own parts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.backends.sqlite import Database
from pipeline.backends.state_sqlite import open_state_database, sqlite_state
from pipeline.ports.state import State


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_state_database(tmp_path)
    yield database
    await database.close()


@pytest.fixture
def state(database: Database) -> State:
    return sqlite_state(database)
