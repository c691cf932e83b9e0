"""The chunk index in one Weaviate collection per generation: our tokens, our vectors, no vectorizer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from weaviate.classes.query import Filter
from weaviate.collections.classes.filters import _Filters
from weaviate.exceptions import UnexpectedStatusCodeError

from pipeline.backends import chunks_weaviate_objects as at
from pipeline.backends.chunks_weaviate_client import WeaviateAddress, WeaviateConnection, answering, refusal
from pipeline.backends.chunks_weaviate_search import (
    Collection,
    condition,
    dense_hits,
    documents_with_all,
    lexical_hits,
    query_text,
)
from pipeline.backends.chunks_weaviate_tokens import key, read_key
from pipeline.ports.chunk_index import ChunkFilter, ChunkText, IndexHit, LexicalQuery
from schemas.document import IndexedChunk

WRITE_BATCH = 250
"""Objects of one insert; with vectors and tokens some megabytes."""
READ_BATCH = 250
ID_BATCH = 1_000
"""Chunks of which only it is asked whether they are there."""
KEY_PAGE = 2_000
IDS_PER_DELETE = 2_000
"""Ids named in one delete request."""


class WeaviateChunks:
    """Implements ChunkIndex. Connects, and creates the collection when it is missing, at the first call.

    `weights` are BM25's for words, bigrams and identifiers; a word of the title counts TITLE_WEIGHT times. Vectors
    are compared one by one up to `EXACT_UP_TO` that pass the filter; among more, HNSW may miss a hit at the edge of
    the list. Of more than 10,000 hits of one score, which ones are given is Weaviate's choice.
    """

    def __init__(
        self,
        address: WeaviateAddress,
        generation: str,
        *,
        prefix: str = "Shinsen",
        weights: tuple[float, float, float] = (1.0, 0.5, 4.0),
    ) -> None:
        self._connection = WeaviateConnection(address)
        self._name = collection_name(prefix, generation)
        searched = (at.WORDS, at.BIGRAMS, at.IDENTIFIERS)
        self._boosts = [f"{name}^{weight:g}" for name, weight in zip(searched, weights, strict=True)]
        self._code_boosts = [f"{at.TITLE_TERMS}^{at.TITLE_WEIGHT}", self._boosts[-1]]
        self._checked = False
        self._lock = asyncio.Lock()

    async def _collection(self) -> Collection:
        client = await self._connection.client()
        if not self._checked:
            async with self._lock:
                if not self._checked:
                    await self._make()
                    self._checked = True
        return client.collections.use(self._name, dict[str, Any])

    async def _collection_again(self) -> Collection:
        """Make it again where somebody dropped it: who asks what is lost puts that back."""
        self._checked = False
        return await self._collection()

    async def _make(self) -> None:
        client = await self._connection.client()
        with self._answering():
            if not await client.collections.exists(self._name):
                try:
                    await at.create_collection(client, self._name)
                except UnexpectedStatusCodeError:
                    if not await client.collections.exists(self._name):
                        raise  # else another process was faster
            await at.check_collection(client, self._name)

    def _answering(self) -> Any:
        return answering(self._connection.address.url)

    async def stage(self, chunks: Sequence[IndexedChunk]) -> None:
        """See ChunkIndex.stage. Raises InvalidConfiguration for vectors of another length."""
        newest = {chunk.id: chunk for chunk in chunks}
        if not newest:
            return
        collection = await self._collection()
        whole = iter(await self._with_kept_vectors(collection, list(newest.values())))
        while batch := list(islice(whole, WRITE_BATCH)):
            objects = await asyncio.to_thread(at.to_objects, batch)
            with self._answering():
                done = await collection.data.insert_many(objects)
            if done.errors:  # the client only logs them
                first = next(iter(done.errors.values()))
                url = self._connection.address.url
                raise refusal(url, f"{len(done.errors)} of {len(objects)} chunks were not written: {first.message}")

    async def _with_kept_vectors(self, collection: Collection, chunks: list[IndexedChunk]) -> list[IndexedChunk]:
        """Give chunks that come without vectors those that are there, where their model is the same."""
        asked = [chunk.id for chunk in chunks if chunk.vector is None and chunk.vector_model]
        there = await self._read(collection, asked) if asked else {}
        kept = []
        for chunk in chunks:
            old = there.get(chunk.id)
            if chunk.vector is None and old is not None and old.vector_model == chunk.vector_model:
                chunk = msgspec.structs.replace(  # noqa: PLW2901
                    chunk, vector=old.vector, sentence_vectors=old.sentence_vectors
                )
            kept.append(chunk)
        return kept

    async def collect(self, live: dict[str, tuple[str, ...]], revision: int) -> None:
        """See ChunkIndex.collect."""
        collection = await self._collection()
        clauses: list[_Filters] = []
        named = 0
        for document, kept in live.items():
            clauses.append(_all_but(document, kept))
            named += 1 + len(kept)
            if named >= IDS_PER_DELETE:
                await self._delete(collection, clauses)
                clauses, named = [], 0
        if clauses:
            await self._delete(collection, clauses)

    async def _delete(self, collection: Collection, clauses: list[_Filters]) -> None:
        """Delete until nothing matches: one request removes 10,000 at most, and does not say so."""
        where = Filter.any_of(clauses) if len(clauses) > 1 else clauses[0]
        while True:
            with self._answering():
                done = await collection.data.delete_many(where)
            if done.failed:
                raise refusal(self._connection.address.url, f"{done.failed} of {done.matches} chunks were not removed")
            if not done.matches:
                return

    async def revision(self) -> int | None:
        """Return None: Weaviate has its own write-ahead log, and what it accepted it keeps."""
        return None

    async def lexical(self, query: LexicalQuery, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """See ChunkIndex.lexical. Scored by BM25; identifiers alone over titles and identifiers."""
        text = query_text(query)
        if not text or where.access_classes == () or limit <= 0:
            return []
        collection = await self._collection()
        with self._answering():
            boosts = self._boosts if query.terms or query.bigrams else self._code_boosts
            return await lexical_hits(collection, text, boosts, condition(where), limit)

    async def dense(self, vector: bytes, where: ChunkFilter, limit: int) -> list[IndexHit]:
        """See ChunkIndex.dense. Raises InvalidConfiguration for a vector of another length."""
        if where.access_classes == () or limit <= 0:
            return []
        collection = await self._collection()
        with self._answering():
            numbers: list[float] = np.frombuffer(vector, "<f4").tolist()
            return await dense_hits(collection, numbers, condition(where), limit)

    async def get(self, ids: Sequence[str], *, vectors: bool = True) -> dict[str, IndexedChunk]:
        """See ChunkIndex.get."""
        return await self._read(await self._collection(), list(dict.fromkeys(ids)), vectors=vectors)

    async def _read(
        self, collection: Collection, ids: Sequence[str], *, vectors: bool = True
    ) -> dict[str, IndexedChunk]:
        found: list[IndexedChunk] = []
        for start in range(0, len(ids), READ_BATCH):
            asked = [at.chunk_uuid(chunk_id) for chunk_id in ids[start : start + READ_BATCH]]
            with self._answering():
                page = await collection.query.fetch_objects_by_ids(asked, limit=len(asked), include_vector=vectors)
            found += [at.to_chunk(o.properties, o.vector) for o in page.objects]
        return {chunk.id: chunk for chunk in found}

    async def texts(self, ids: Sequence[str]) -> dict[str, ChunkText]:
        """See ChunkIndex.texts."""
        collection = await self._collection()
        found: dict[str, ChunkText] = {}
        asked = [at.chunk_uuid(chunk_id) for chunk_id in dict.fromkeys(ids)]
        for start in range(0, len(asked), READ_BATCH):
            some = asked[start : start + READ_BATCH]
            with self._answering():
                page = await collection.query.fetch_objects_by_ids(
                    some, limit=len(some), return_properties=list(at.READ_BY_A_SEARCH)
                )
            found.update((read_key(str(o.properties[at.CHUNK])), at.to_text(o.properties)) for o in page.objects)
        return found

    async def missing(self, ids: Sequence[str]) -> set[str]:
        """See ChunkIndex.missing."""
        if not ids:
            return set()
        collection = await self._collection_again()
        asked = {at.chunk_uuid(chunk_id): chunk_id for chunk_id in ids}
        names = list(asked)
        for start in range(0, len(names), ID_BATCH):
            some = names[start : start + ID_BATCH]
            with self._answering():
                page = await collection.query.fetch_objects_by_ids(some, limit=len(some), return_properties=[])
            for there in page.objects:
                del asked[there.uuid]
        return set(asked.values())

    async def held(self, documents: Sequence[str]) -> set[str]:
        """See ChunkIndex.held."""
        if not documents:
            return set()
        collection = await self._collection_again()
        found: set[str] = set()
        for start in range(0, len(documents), ID_BATCH):
            left = {key(document): document for document in documents[start : start + ID_BATCH]}
            while left and (some := await self._some_of(collection, list(left))):
                found.update(left.pop(name) for name in some)
        return found

    async def _some_of(self, collection: Collection, keys: list[str]) -> set[str]:
        """Return the keys of some documents that have chunks: of one with many they may be all that is returned."""
        where = Filter.by_property(at.DOCUMENT).contains_any(keys)
        with self._answering():
            page = await collection.query.fetch_objects(filters=where, limit=ID_BATCH, return_properties=[at.DOCUMENT])
        return {str(found.properties[at.DOCUMENT]) for found in page.objects}

    async def documents_with(self, bigrams: Sequence[str], limit: int) -> list[str]:
        """See ChunkIndex.documents_with; no bigrams find nothing."""
        wanted = [bigram for bigram in dict.fromkeys(bigrams) if bigram]
        if not wanted or limit <= 0:
            return []
        collection = await self._collection()
        with self._answering():
            return await documents_with_all(collection, wanted, limit)

    async def count(self) -> int:
        """See ChunkIndex.count."""
        collection = await self._collection()
        with self._answering():
            return (await collection.aggregate.over_all(total_count=True)).total_count or 0

    async def scan(self) -> AsyncIterator[IndexedChunk]:
        """See ChunkIndex.scan. Reads all ids first (some 100 bytes each), since Weaviate's own order is another."""
        collection = await self._collection()
        ids = sorted([chunk_id async for chunk_id in self._ids(collection)])
        for start in range(0, len(ids), READ_BATCH):
            page = ids[start : start + READ_BATCH]
            found = await self._read(collection, page)
            for chunk_id in page:
                if chunk_id in found:
                    yield found[chunk_id]

    async def _ids(self, collection: Collection) -> AsyncIterator[str]:
        after = None
        while True:
            with self._answering():
                page = await collection.query.fetch_objects(limit=KEY_PAGE, after=after, return_properties=[at.CHUNK])
            for found in page.objects:
                yield read_key(str(found.properties[at.CHUNK]))
            if not page.objects:
                return
            after = page.objects[-1].uuid

    async def drop(self) -> None:
        """See ChunkIndex.drop."""
        client = await self._connection.client()
        with self._answering():
            await client.collections.delete(self._name)
        await self.close()

    async def close(self) -> None:
        """See ChunkIndex.close."""
        await self._connection.close()


def _all_but(document: str, kept: Sequence[str]) -> _Filters:
    of_document = Filter.by_property(at.DOCUMENT).equal(key(document))
    if not kept:
        return of_document
    return of_document & Filter.by_property(at.CHUNK).contains_none([key(chunk_id) for chunk_id in kept])


def collection_name(prefix: str, generation: str) -> str:
    """Return a name that Weaviate takes: letters and digits; others become their number."""
    plain = "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in generation)
    return f"{prefix}_{plain}"
