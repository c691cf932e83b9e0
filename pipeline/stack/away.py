"""A chunk index that is known to be away: says so at once, where its client would try again for seconds."""

from collections.abc import AsyncIterator, Sequence
from typing import NoReturn

from pipeline.errors import BackendUnavailable
from pipeline.ports.chunk_index import ChunkFilter, ChunkText, IndexHit, LexicalQuery
from schemas.document import IndexedChunk


class AwayChunks:
    """Implements ChunkIndex: every call raises BackendUnavailable with what the last look at the store said."""

    def __init__(self, why: str) -> None:
        self._why = why

    def _refuse(self) -> NoReturn:
        raise BackendUnavailable(self._why)

    async def stage(self, chunks: Sequence[IndexedChunk]) -> None:
        """Raise."""
        self._refuse()

    async def collect(self, live: dict[str, tuple[str, ...]], revision: int) -> None:
        """Raise."""
        self._refuse()

    async def revision(self) -> int | None:
        """Raise."""
        self._refuse()

    async def lexical(self, query: LexicalQuery, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """Raise."""
        self._refuse()

    async def dense(self, vector: bytes, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """Raise."""
        self._refuse()

    async def get(self, ids: Sequence[str], *, vectors: bool = True) -> dict[str, IndexedChunk]:
        """Raise."""
        self._refuse()

    async def texts(self, ids: Sequence[str]) -> dict[str, ChunkText]:
        """Raise."""
        self._refuse()

    async def missing(self, ids: Sequence[str]) -> set[str]:
        """Raise."""
        self._refuse()

    async def held(self, documents: Sequence[str]) -> set[str]:
        """Raise."""
        self._refuse()

    async def documents_with(self, bigrams: Sequence[str], limit: int) -> list[str]:
        """Raise."""
        self._refuse()

    async def count(self) -> int:
        """Raise."""
        self._refuse()

    def scan(self) -> AsyncIterator[IndexedChunk]:
        """Raise."""
        self._refuse()

    async def drop(self) -> None:
        """Raise."""
        self._refuse()

    async def close(self) -> None:
        """Nothing is open."""
