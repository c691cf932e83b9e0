"""The fixtures that a backend of ChunkIndex gives."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from pipeline.ports.chunk_index import ChunkIndex

OpenIndex = Callable[[], Awaitable[ChunkIndex]]


class ChunkFixtures:
    """Subclasses give `open_index`: it opens one generation's index, empty at the test's start. Opened
    again after `close`, it is the same index. Vectors have `chunk_examples.DIMENSIONS` numbers."""

    MANY = 10_000
    """Chunks of a large index, in tests."""

    @pytest.fixture
    async def open_index(self) -> OpenIndex:
        raise NotImplementedError

    @pytest.fixture
    async def index(self, open_index: OpenIndex) -> AsyncIterator[ChunkIndex]:
        index = await open_index()
        yield index
        await index.close()
