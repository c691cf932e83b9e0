"""The chunk index, one per generation."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec

from schemas.document import IndexedChunk


class ChunkFilter(msgspec.Struct, frozen=True):
    """What a search may return. Empty members do not filter."""

    access_classes: tuple[str, ...] | None = None
    """None: everything (the asker's groups hold `*`). An empty tuple matches nothing."""
    sources: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    updated_from: str = ""
    """Inclusive, RFC 3339 UTC."""
    updated_to: str = ""
    """Exclusive."""
    fields: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Field name to the values (as text) of which one must match."""
    identifiers: tuple[str, ...] = ()
    """One of them is among the chunk's identifiers or title terms, exactly."""


class IndexHit(msgspec.Struct, frozen=True):
    """A chunk found; the caller checks it against the manifest before showing it."""

    id: str
    document: str
    score: float
    """Higher is better; comparable only within one list."""


class LexicalQuery(msgspec.Struct, frozen=True):
    """Analyzed query terms; any of them may match."""

    terms: tuple[str, ...]
    bigrams: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    """Found among identifiers and title terms. Asked for alone, they are found nowhere else: exactly the identifier."""


class ChunkText(msgspec.Struct, frozen=True):
    """What a search reads of a chunk that it has found; nothing else is decoded."""

    text: str
    headings: tuple[str, ...]
    terms: tuple[str, ...]
    title_terms: tuple[str, ...]
    bigrams: Sequence[str]
    """In reading order, packed where that goes: asking `in` and `count` for a few is quick, walking all is not."""
    sentence_vectors: bytes = b""
    """As `IndexedChunk` has them."""


class ChunkIndex(Protocol):
    """Text, terms and vectors of chunks. Knows nothing of positions: the manifest decides what is live."""

    async def stage(self, chunks: Sequence[IndexedChunk]) -> None:
        """Write or overwrite chunks by id; all of the batch are durable and searchable on return.

        A chunk given without a vector keeps the vectors that are there only if their model is the same.
        """

    async def collect(self, live: dict[str, tuple[str, ...]], revision: int) -> None:
        """For each document (key of `live`) remove all its chunks but the ids given; () removes all.

        Exact on the document key (`1-1` leaves `1-12`), without limit on how many are removed.
        Remembers `revision` durably, in the same step.
        """

    async def revision(self) -> int | None:
        """Return the last revision remembered, or None when the store is durable on its own terms."""

    async def lexical(self, query: LexicalQuery, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """Return the best by BM25 over title terms, terms, bigrams and identifiers; ties by id."""

    async def dense(self, vector: bytes, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """Return the nearest by cosine among chunks that have a vector; ties by id."""

    async def get(self, ids: Sequence[str], *, vectors: bool = True) -> dict[str, IndexedChunk]:
        """Return chunks by id; missing ids are absent. Without `vectors` none has one, and it is faster."""

    async def texts(self, ids: Sequence[str]) -> dict[str, ChunkText]:
        """Return what a search reads of these chunks, of one moment; missing ids are absent. The fastest way to it."""

    async def missing(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that no chunk has; nothing of a chunk is transferred."""

    async def held(self, documents: Sequence[str]) -> set[str]:
        """Return those of the documents that have a chunk."""

    async def documents_with(self, bigrams: Sequence[str], limit: int) -> list[str]:
        """Return keys of documents with a chunk that holds all these bigrams, in key order."""

    async def count(self) -> int:
        """Return how many chunks there are."""

    def scan(self) -> AsyncIterator[IndexedChunk]:
        """Yield all chunks in byte order of the id."""

    async def drop(self) -> None:
        """Remove this generation's index and all its files."""

    async def close(self) -> None:
        """Let go of files and connections; idempotent."""
