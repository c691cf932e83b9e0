"""Chunks for the contract of ChunkIndex."""

import struct
from typing import Any

import msgspec

from pipeline.ports.chunk_index import ChunkFilter, LexicalQuery
from schemas.document import Analysis, IndexedChunk

DIMENSIONS = 8
MODEL = "test-model:1"
ALL = ChunkFilter()


def unit(*values: float) -> bytes:
    """Return a unit vector of DIMENSIONS numbers that starts with these."""
    padded = [*values, *[0.0] * (DIMENSIONS - len(values))]
    length = sum(value * value for value in padded) ** 0.5
    return struct.pack(f"<{DIMENSIONS}f", *(value / length for value in padded))


def chunk(
    chunk_id: str,
    *terms: str,
    document: str = "cmms/work_orders/1-1",
    bigrams: tuple[str, ...] = (),
    identifiers: tuple[str, ...] = (),
    title_terms: tuple[str, ...] = (),
    vector: bytes | None = None,
    **more: Any,
) -> IndexedChunk:
    """Return a chunk with these terms."""
    made = IndexedChunk(
        id=chunk_id,
        document=document,
        text="".join(terms) or "本文",
        title="点検記録",
        headings=("第一章",),
        analysis=Analysis(terms=terms, bigrams=bigrams, identifiers=identifiers),
        title_terms=title_terms,
        vector=vector,
        vector_model=MODEL if vector else "",
        access_class="class-a",
        source="cmms",
        collection="work_orders",
        type="WorkOrder",
        updated_at="2025-07-08T00:00:00.000000Z",
    )
    return msgspec.structs.replace(made, **more)


def words(*terms: str, bigrams: tuple[str, ...] = (), identifiers: tuple[str, ...] = ()) -> LexicalQuery:
    return LexicalQuery(terms, bigrams, identifiers)
