"""The cache in SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pipeline.backends.cache_sqlite import SqliteCache
from tests.contracts.cache import CacheContract


class TestSqliteCache(CacheContract):
    @pytest.fixture
    async def cache(self, tmp_path: Path) -> AsyncIterator[SqliteCache]:
        cache = SqliteCache(tmp_path / "cache.db")
        yield cache
        await cache.close()

    async def test_is_there_after_a_restart(self, tmp_path: Path) -> None:
        for expected in ({}, {"a": b"1"}):
            cache = SqliteCache(tmp_path / "again.db")
            assert await cache.get("k", ["a"]) == expected
            await cache.put("k", {"a": b"1"})
            await cache.close()
