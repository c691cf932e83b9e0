"""One document as an asker may see it."""

import asyncio
from typing import Any

import msgspec

from api.retrieval.access import Asker
from api.retrieval.labels import Labels, NodeInfo, node_info
from api.retrieval.reader import Reader, document_info
from api.retrieval.record_texts import record_chunks
from pipeline.errors import BackendUnavailable
from pipeline.mapping import Mappings
from pipeline.mapping.check import restricted_columns
from pipeline.mapping.row import Row
from schemas.change_event import split_document_key
from schemas.document import Manifest
from schemas.knowledge import Fact
from schemas.query import DocumentInfo
from schemas.record import Record

_STORE_S = 5.0
"""So long one store may take; then the document is shown without it."""


class FactView(msgspec.Struct, frozen=True, kw_only=True):
    """A fact for people and programs."""

    subject: NodeInfo
    predicate: str
    object: NodeInfo
    document: str
    method: str
    confidence: float
    chunk_id: str
    span: tuple[int, int] | None
    observed_at: str


class ChunkView(msgspec.Struct, frozen=True, kw_only=True):
    """A live chunk; `start` and `end` are offsets in the body."""

    id: str
    start: int
    end: int
    text: str


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """The source record. Columns that ask for more than the document does are left out."""

    version: str
    position: str
    occurred_at: str
    columns: dict[str, Any]


class AccessView(msgspec.Struct, frozen=True, kw_only=True):
    """Who may read: a group of every clause of `allow`, and none of `deny`."""

    allow: list[list[str]]
    deny: list[str]


class DocumentView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is kept of a document."""

    document: DocumentInfo
    body: str
    fields: dict[str, Any]
    record: RecordView | None
    """None while a newer version of the record is on its way into the indexes."""
    chunks: list[ChunkView]
    facts: list[FactView]
    acl: AccessView
    warnings: list[str] = []


async def view_document(reader: Reader, mappings: Mappings, key: str) -> DocumentView | None:
    """Return the document, or None when there is none that this asker may know of."""
    manifest = (await reader.manifests([key])).get(key)
    if manifest is None:
        return None
    chunks, facts, warnings = await _chunks(reader, manifest), *await _facts(reader, key)
    record = (await reader.runtime.state.records([key])).get(key)
    labels = Labels()
    labels.learn(facts)
    labels.learn_titles({key: manifest})
    return DocumentView(
        document=document_info(manifest),
        body=body_of(chunks),
        fields=reader.asker.visible_fields(manifest),
        record=_record(record, manifest, mappings, reader.asker),
        chunks=chunks,
        facts=[fact_view(fact, labels) for fact in facts],
        acl=AccessView(allow=[list(clause) for clause in manifest.access.allow], deny=list(manifest.access.deny)),
        warnings=warnings,
    )


async def _facts(reader: Reader, key: str) -> tuple[list[Fact], list[str]]:
    """Return the document's facts; without the graph the rest can still be shown."""
    try:
        async with asyncio.timeout(_STORE_S):
            return await reader.live_facts(await reader.indexes.graph.facts_of([key])), []
    except (BackendUnavailable, TimeoutError):
        return [], ["the graph did not answer, so no facts are shown"]


async def _chunks(reader: Reader, manifest: Manifest) -> list[ChunkView]:
    try:
        async with asyncio.timeout(_STORE_S):
            found = await reader.indexes.chunks.texts([ref.id for ref in manifest.chunks])
            texts = {name: chunk.text for name, chunk in found.items()}
    except (BackendUnavailable, TimeoutError):
        texts = {one.ref.id: one.text for one in await record_chunks(reader, [manifest.document])}
    return [
        ChunkView(id=ref.id, start=ref.start, end=ref.end, text=texts[ref.id])
        for ref in manifest.chunks
        if ref.id in texts
    ]


def body_of(chunks: list[ChunkView]) -> str:
    """Put the body together from its chunks: every character but white space is in one of them."""
    body = ""
    for chunk in sorted(chunks, key=lambda c: (c.start, c.end)):
        if chunk.end > len(body):
            gap = "\n" * max(0, chunk.start - len(body))
            body += gap + chunk.text[max(0, len(body) - chunk.start) :]
    return body


def _record(record: Record | None, manifest: Manifest, mappings: Mappings, asker: Asker) -> RecordView | None:
    """Show the record only at the version that the manifest stands for: its ACL was read from that one."""
    if record is None or record.op != "upsert" or record.position != manifest.position:
        return None
    source, collection, _ = split_document_key(record.document)
    row = Row(record, mappings.of(source, collection))
    guarded = restricted_columns(row.mapping)
    return RecordView(
        version=record.version,
        position=record.position,
        occurred_at=record.occurred_at,
        columns={
            name: value
            for name, value in record.columns.items()
            if name not in guarded or asker.permits(row.access(guarded[name]))
        },
    )


def fact_view(fact: Fact, labels: Labels) -> FactView:
    """Return a fact with its nodes named."""
    return FactView(
        subject=node_info(fact.subject, labels),
        predicate=fact.predicate,
        object=node_info(fact.object, labels),
        document=fact.document,
        method=fact.method,
        confidence=fact.confidence,
        chunk_id=fact.chunk_id,
        span=fact.span,
        observed_at=fact.observed_at,
    )
