"""The pairs over the index of the embedded profile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.backends.chunks_sqlite import SqliteChunks
from tests.language.finding import DIFFERENT, SAME, Finding


class TestSqlite(Finding):
    @pytest.fixture
    async def index(self, tmp_path: Path) -> AsyncIterator[SqliteChunks]:
        index = SqliteChunks(tmp_path, "g1")
        yield index
        await index.close()


@pytest.mark.parametrize("pairs", [SAME, DIFFERENT])
def test_no_pair_is_there_twice(pairs: list[object]) -> None:
    assert len({str(pair) for pair in pairs}) == len(pairs)
