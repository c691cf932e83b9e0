"""The chunk index in one SQLite file per generation: FTS5 for words, sqlite-vec for vectors."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import apsw

from pipeline.backends.chunks_sqlite_check import Audit, audit
from pipeline.backends.chunks_sqlite_rows import (
    ADDITIONS,
    CHUNK_SELECT,
    SCHEMA,
    TEXT_SELECT,
    decode_chunk,
    decode_text,
    encode_chunks,
    prepare_connection,
    with_sentences,
)
from pipeline.backends.chunks_sqlite_search import common_hits, dense_hits, documents_with_all, lexical_hits
from pipeline.backends.chunks_sqlite_vectors import VectorMatrix
from pipeline.backends.chunks_sqlite_writes import dimensions, remember_revision, remove_chunks, write_chunks
from pipeline.backends.decoded import DecodedCache
from pipeline.backends.fts5_budget import PostingBudget
from pipeline.backends.sqlite import Database
from pipeline.ports.chunk_index import ChunkFilter, ChunkText, IndexHit, LexicalQuery
from schemas.document import IndexedChunk

PAGE_BYTES = 16_384
"""Vectors are read in blocks of 1.5 MB: following SQLite's usual pages of 4 KB costs a fifth of a dense search."""
TEXTS_IN_MEMORY = 16 << 20
"""Bytes of rows whose texts and terms stay decoded: some 9,000 chunks of 400 characters, which take about 75 MiB."""
PAGE = 500
"""Chunks that a scan reads at a time."""


class SqliteChunks:
    """Implements ChunkIndex in `<folder>/chunks-<generation>.db`. Constructing it opens the file.

    `weights` are BM25's for title terms, terms, bigrams and identifiers. `posting_budget` bounds the
    index entries that one lexical search walks (see PostingBudget). Up to `vectors_in_memory` vectors (1.5 kB
    each at 384 dimensions) are searched in memory, more in the file, five to ten times slower.
    """

    def __init__(
        self,
        folder: Path,
        generation: str,
        *,
        weights: tuple[float, float, float, float] = (3.0, 1.0, 0.5, 4.0),
        posting_budget: int = 3_000,
        readers: int = 2,
        vectors_in_memory: int = 200_000,
    ) -> None:
        self._database = Database(
            folder / f"chunks-{generation}.db",
            SCHEMA,
            additions=ADDITIONS,
            readers=readers,
            setup=prepare_connection,
            cache_mib=96,
            page_bytes=PAGE_BYTES,
        )
        self._rank = f"bm25({', '.join(str(float(weight)) for weight in weights)})"
        self._budget = PostingBudget(posting_budget)
        self._vectors = VectorMatrix(vectors_in_memory)
        self._texts = DecodedCache(decode_text, TEXTS_IN_MEMORY)

    async def stage(self, chunks: Sequence[IndexedChunk]) -> None:
        """See ChunkIndex.stage. One transaction. Raises InvalidConfiguration for vectors of another length."""
        if chunks:
            encoded = await asyncio.to_thread(encode_chunks, chunks)
            await self._database.write(lambda connection: write_chunks(connection, encoded), self._vectors.touch)

    async def collect(self, live: dict[str, tuple[str, ...]], revision: int) -> None:
        """See ChunkIndex.collect. One transaction."""

        def remove(connection: apsw.Connection) -> set[int]:
            removed = [remove_chunks(connection, document, kept) for document, kept in live.items()]
            remember_revision(connection, revision)
            return set().union(*removed)

        await self._database.write(remove, self._vectors.touch)

    async def revision(self) -> int | None:
        """See ChunkIndex.revision; 0 before the first `collect`."""
        revision = await self._database.read(
            lambda connection: connection.execute("SELECT value FROM memo WHERE name = 'revision'").get
        )
        return int(revision or 0)

    async def lexical(self, query: LexicalQuery, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """See ChunkIndex.lexical."""
        if where.access_classes == () or limit <= 0:
            return []

        def search(connection: apsw.Connection) -> list[IndexHit]:
            match, terms, bigrams = self._budget.match(connection, query)
            hits = lexical_hits(connection, match, self._rank, where, limit) if match else []
            if len(hits) < limit and (terms or bigrams) and where != ChunkFilter():
                hits += common_hits(connection, terms, bigrams, where, hits)
            return hits[:limit]

        return await self._database.read(search)

    async def dense(self, vector: bytes, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """See ChunkIndex.dense. Raises InvalidConfiguration for a vector of another length."""
        if where.access_classes == () or limit <= 0:
            return []

        def search(connection: apsw.Connection) -> list[IndexHit]:
            return dense_hits(connection, self._vectors, vector, where, limit)

        return await self._database.read(search)

    async def get(self, ids: Sequence[str], *, vectors: bool = True) -> dict[str, IndexedChunk]:
        """See ChunkIndex.get."""

        def read(connection: apsw.Connection) -> dict[str, IndexedChunk]:
            found = (chunk for i in dict.fromkeys(ids) for chunk in _read(connection, "c.id = ?", (i,), vectors))
            return {chunk.id: chunk for chunk in found}

        return await self._database.read(read)

    async def texts(self, ids: Sequence[str]) -> dict[str, ChunkText]:
        """See ChunkIndex.texts. One statement for each PAGE of them: one for each of 50 takes seven times as long."""
        asked = list(dict.fromkeys(ids))

        def read(connection: apsw.Connection) -> dict[str, ChunkText]:
            found: dict[str, ChunkText] = {}
            for start in range(0, len(asked), PAGE):
                some = asked[start : start + PAGE]
                rows = connection.execute(f"{TEXT_SELECT} WHERE c.id IN ({', '.join('?' * len(some))})", some)
                for chunk_id, sentences, *blobs in rows:
                    found[chunk_id] = with_sentences(self._texts(*blobs), sentences)
            return found

        return await self._database.look(read)

    async def missing(self, ids: Sequence[str]) -> set[str]:
        """See ChunkIndex.missing."""
        return set(ids) - await self._database.read(lambda connection: _known(connection, "id", ids))

    async def held(self, documents: Sequence[str]) -> set[str]:
        """See ChunkIndex.held."""
        return await self._database.read(lambda connection: _known(connection, "document", documents))

    async def documents_with(self, bigrams: Sequence[str], limit: int) -> list[str]:
        """See ChunkIndex.documents_with; no bigrams find nothing."""
        wanted = [bigram for bigram in dict.fromkeys(bigrams) if bigram]
        if not wanted or limit <= 0:
            return []
        return await self._database.read(lambda connection: documents_with_all(connection, wanted, limit))

    async def count(self) -> int:
        """See ChunkIndex.count."""
        return int(await self._database.read(lambda connection: connection.execute("SELECT count(*) FROM chunk").get))

    async def scan(self) -> AsyncIterator[IndexedChunk]:
        """See ChunkIndex.scan. Yields chunks as a search would find them: where the lexical index or
        the vectors disagree with the rows (a row lost, a foreign edit), tokens or vector are missing.

        Raises BackendUnavailable when an index holds entries of no chunk. Checking is one pass over
        the index on the writer's thread.
        """
        found: Audit = await self._database.write(audit)
        after = ""
        while True:
            page = await self._database.read(
                lambda connection, after=after: _read(connection, "c.id > ? ORDER BY c.id LIMIT ?", (after, PAGE))  # type: ignore[misc]
            )
            for chunk in page:
                yield found.as_searched(chunk)
            if len(page) < PAGE:
                return
            after = page[-1].id

    async def compact(self) -> None:
        """Rewrite the lexical index, so that terms of removed chunks are not even in the file any more.

        Searches do not need it. Writing waits meanwhile: seconds at 10,000 chunks, a minute at 100,000.
        """
        await self._database.write(
            lambda connection: connection.execute("INSERT INTO lexical (lexical) VALUES ('optimize')")
        )

    async def drop(self) -> None:
        """See ChunkIndex.drop."""
        await self._database.destroy()

    async def close(self) -> None:
        """See ChunkIndex.close."""
        await self._database.close()


def _known(connection: apsw.Connection, column: str, values: Sequence[str]) -> set[str]:
    """Return which of these values a column of `chunk` that has an index holds."""
    found: set[str] = set()
    for start in range(0, len(values), PAGE):
        some = values[start : start + PAGE]
        rows = connection.execute(
            f"SELECT DISTINCT {column} FROM chunk WHERE {column} IN ({', '.join('?' * len(some))})",  # noqa: S608
            some,
        )
        found.update(value for (value,) in rows)
    return found


def _read(
    connection: apsw.Connection, condition: str, values: tuple[object, ...], vectors: bool = True
) -> list[IndexedChunk]:
    rows = connection.execute(f"{CHUNK_SELECT} WHERE {condition}", values).fetchall()
    if not vectors or not dimensions(connection):
        return [decode_chunk(row, None) for row in rows]
    return [
        decode_chunk(
            row,
            connection.execute("SELECT embedding FROM vector WHERE rowid = ?", (row[0],)).get,
            connection.execute("SELECT packed FROM sentence_vectors WHERE n = ?", (row[0],)).get,
        )
        for row in rows
    ]
