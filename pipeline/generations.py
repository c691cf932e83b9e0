"""Generations in one process: opening a set of indexes, pinning it for a request, dropping it when nobody reads it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from pipeline.embedded.index_builder import IndexBuilder
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.runtime import Indexes


class OpenGeneration:
    """One generation's indexes with the builder that keeps them up."""

    def __init__(self, name: str, chunks: ChunkIndex, graph: Graph, builder: IndexBuilder) -> None:
        self.name, self.chunks, self.graph, self.builder = name, chunks, graph, builder
        self._pins = 0
        self._unpinned = asyncio.Event()
        self._unpinned.set()

    @asynccontextmanager
    async def pinned(self) -> AsyncIterator[Indexes]:
        """Hand out the indexes; they stay until the block ends."""
        self._pins += 1
        self._unpinned.clear()
        try:
            yield Indexes(self.name, self.chunks, self.graph)
        finally:
            self._pins -= 1
            if not self._pins:
                self._unpinned.set()

    async def close(self) -> None:
        """Stop building and let go of files."""
        await self.builder.stop()
        await self.chunks.close()
        await self.graph.close()

    async def unpinned(self, timeout_s: float) -> None:
        """Wait for readers, at most so long."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._unpinned.wait(), timeout_s)

    async def drop(self, timeout_s: float) -> None:
        """Wait for readers (at most `timeout_s`: those who take longer get an error), then remove all files."""
        await self.builder.stop()
        await self.unpinned(timeout_s)
        await self.chunks.drop()
        await self.graph.drop()


Opener = Callable[[str, bool], OpenGeneration]
"""Opens (or creates) the indexes of a generation; True when it is live: it announces and stages."""


def next_name(existing: list[str]) -> str:
    """Return the next name of the form g1, g2, ..."""
    numbers = [int(name[1:]) for name in existing if name[:1] == "g" and name[1:].isdigit()]
    return f"g{max(numbers, default=0) + 1}"
