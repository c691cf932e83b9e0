"""How a chunk lies in Weaviate: the collection's schema, chunks to objects and back."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from weaviate import WeaviateAsyncClient
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.classes.data import DataObject

from pipeline.backends.chunks_weaviate_tokens import BIGRAM, column, key, read_key, tokens
from pipeline.backends.field_values import field_texts
from pipeline.errors import InvalidConfiguration
from pipeline.ports.chunk_index import ChunkText
from pipeline.text.pairs import packed_pairs
from schemas.document import Analysis, IndexedChunk
from schemas.knowledge import Mention

CHUNK, DOCUMENT, ACCESS_CLASS, UPDATED_AT, FACETS = "chunk", "document", "access_class", "updated_at", "facets"
SOURCE, COLLECTION, TYPE, VECTOR_MODEL, CONTENT = "source", "collection", "type", "vector_model", "content"
TITLE_TERMS, TERMS, BIGRAMS, IDENTIFIERS = "title_terms", "terms", "bigrams", "identifiers"
WORDS = "words"
"""Title terms, each so many times as it weighs more than a term of the text, and terms: the one property that questions
in words ask. Weaviate scores each property by itself, with a length and a saturation of its own, and adds that up: a
title would count too much. One property is what BM25 over a whole chunk is, as SQLite has it."""
TITLE_WEIGHT = 3
KEYS = (CHUNK, DOCUMENT, ACCESS_CLASS, UPDATED_AT, SOURCE, COLLECTION, TYPE)
HAS_VECTOR = "has_vector"
VECTOR = "default"
EXACT_UP_TO = 40_000
"""Vectors that a filter may let pass and still be compared one by one; beyond it Weaviate walks its graph."""
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:shinsen:chunk")
_SEPARATOR = "\x1f"


class Content(msgspec.Struct, frozen=True, array_like=True):
    """The parts of a chunk that no index reads."""

    text: str
    title: str
    headings: tuple[str, ...]
    mentions: tuple[Mention, ...]
    fields: dict[str, Any]
    sentence_vectors: bytes = b""
    """In no property of their own: collections that were made before there were these stand as they are."""


class _Head(msgspec.Struct, frozen=True, array_like=True):
    """`Content`, of which a search reads a part."""

    text: str
    title: msgspec.Raw
    headings: tuple[str, ...]
    mentions: msgspec.Raw
    fields: msgspec.Raw
    sentence_vectors: bytes = b""


def chunk_uuid(chunk_id: str) -> uuid.UUID:
    """Return the object's id: the same for the same chunk, so that writing again overwrites."""
    return uuid.uuid5(_NAMESPACE, key(chunk_id))


def facet(name: str, value: str) -> str:
    """Return the form in which one value of a field is filtered by."""
    return f"{key(name)}{_SEPARATOR}{key(value)}"


def to_object(chunk: IndexedChunk) -> "DataObject[dict[str, Any], None]":
    """Return the object to write."""
    found = chunk.analysis
    vector = None if chunk.vector is None else np.frombuffer(chunk.vector, "<f4").tolist()
    sentences = chunk.sentence_vectors if vector is not None else b""
    content = Content(chunk.text, chunk.title, chunk.headings, found.mentions, chunk.fields, sentences)
    return DataObject(
        uuid=chunk_uuid(chunk.id),
        vector=vector,
        properties={
            CHUNK: key(chunk.id),
            DOCUMENT: key(chunk.document),
            ACCESS_CLASS: key(chunk.access_class),
            UPDATED_AT: key(chunk.updated_at),
            SOURCE: key(chunk.source),
            COLLECTION: key(chunk.collection),
            TYPE: key(chunk.type),
            VECTOR_MODEL: chunk.vector_model if vector is not None else "",
            HAS_VECTOR: vector is not None,
            FACETS: [facet(name, text) for name, value in chunk.fields.items() for text in field_texts(value)],
            TITLE_TERMS: column(chunk.title_terms),
            TERMS: column(found.terms),
            WORDS: column((*chunk.title_terms * TITLE_WEIGHT, *found.terms)),
            BIGRAMS: column(found.bigrams, BIGRAM),
            IDENTIFIERS: column(found.identifiers),
            CONTENT: msgspec.json.encode(content, order="deterministic").decode(),
        },
    )


def to_objects(chunks: Sequence[IndexedChunk]) -> "list[DataObject[dict[str, Any], None]]":
    """Return the objects to write (some 50 µs each: call it off the event loop)."""
    return [to_object(chunk) for chunk in chunks]


def vector_bytes(vectors: Mapping[str, Any]) -> bytes | None:
    """Return an object's vector as we write it; None when it has none."""
    vector = vectors.get(VECTOR)
    return None if not vector else np.asarray(vector, "<f4").tobytes()


def to_chunk(properties: Mapping[str, Any], vectors: Mapping[str, Any]) -> IndexedChunk:
    """Return the chunk that an object holds; without a vector it names no model."""
    content = msgspec.json.decode(properties[CONTENT], type=Content)
    vector = vector_bytes(vectors)
    return IndexedChunk(
        id=read_key(properties[CHUNK]),
        document=read_key(properties[DOCUMENT]),
        text=content.text,
        title=content.title,
        headings=content.headings,
        analysis=Analysis(
            terms=tokens(properties[TERMS]),
            bigrams=tokens(properties[BIGRAMS], BIGRAM),
            identifiers=tokens(properties[IDENTIFIERS]),
            mentions=content.mentions,
        ),
        title_terms=tokens(properties[TITLE_TERMS]),
        vector=vector,
        vector_model=properties[VECTOR_MODEL] if vector is not None else "",
        sentence_vectors=content.sentence_vectors if vector is not None else b"",
        access_class=read_key(properties[ACCESS_CLASS]),
        source=read_key(properties[SOURCE]),
        collection=read_key(properties[COLLECTION]),
        type=read_key(properties[TYPE]),
        updated_at=read_key(properties[UPDATED_AT]),
        fields=content.fields,
    )


READ_BY_A_SEARCH = (CHUNK, TITLE_TERMS, TERMS, BIGRAMS, CONTENT)


def to_text(properties: Mapping[str, Any]) -> ChunkText:
    """Return what a search reads of an object."""
    content = msgspec.json.decode(properties[CONTENT], type=_Head)
    words = tokens(properties[TERMS]), tokens(properties[TITLE_TERMS])
    pairs = packed_pairs(tokens(properties[BIGRAMS], BIGRAM))
    return ChunkText(content.text, content.headings, *words, pairs, content.sentence_vectors)


def _text(name: str, tokenization: Tokenization, *, search: bool = False, filters: bool = False) -> Property:
    return Property(
        name=name,
        data_type=DataType.TEXT,
        tokenization=tokenization,
        index_searchable=search,
        index_filterable=filters,
    )


def _facets() -> Property:
    return Property(
        name=FACETS,
        data_type=DataType.TEXT_ARRAY,
        tokenization=Tokenization.FIELD,
        index_searchable=False,
        index_filterable=True,
    )


def _properties() -> list[Property]:
    return [
        *(_text(name, Tokenization.FIELD, filters=True) for name in KEYS),
        _facets(),
        Property(name=HAS_VECTOR, data_type=DataType.BOOL, index_filterable=True),
        # Which documents hold all bigrams of a name is asked of BM25's index too: a second one for filters would halve
        # the rate of writing.
        *(_text(name, Tokenization.WHITESPACE, search=True) for name in (TITLE_TERMS, WORDS, IDENTIFIERS, BIGRAMS)),
        _text(TERMS, Tokenization.WHITESPACE),
        _text(VECTOR_MODEL, Tokenization.FIELD),
        _text(CONTENT, Tokenization.FIELD),
    ]


async def create_collection(client: WeaviateAsyncClient, name: str) -> None:
    """Create a generation's collection."""
    await client.collections.create(
        name,
        properties=_properties(),
        # Our vectors have unit length: the dot product is the cosine, and nothing is normalized again.
        vector_config=Configure.Vectors.self_provided(
            vector_index_config=Configure.VectorIndex.hnsw(
                distance_metric=VectorDistances.DOT, dynamic_ef_min=200, flat_search_cutoff=EXACT_UP_TO
            )
        ),
        # No stop words: `the` as a term is there because our analyzer wanted it.
        inverted_index_config=Configure.inverted_index(bm25_k1=1.2, bm25_b=0.75, stopwords_preset=StopwordsPreset.NONE),
    )


async def check_collection(client: WeaviateAsyncClient, name: str) -> None:
    """Refuse a collection that others made. Raises InvalidConfiguration."""
    there = await client.collections.use(name).config.get()
    found = {p.name: (p.data_type, p.tokenization) for p in there.properties}
    wanted = {p.name: (p.dataType, p.tokenization) for p in _properties()}
    wrong = sorted(name for name, kind in wanted.items() if found.get(name) != kind)
    if wrong:
        raise InvalidConfiguration(
            f"the Weaviate collection {name} is not as Shinsen makes it (see {', '.join(wrong)}): "
            "another program or version made it; remove it and run `shinsen replay`"
        )
