"""Link: give a prepared document its facts, under the names that are declared now, and the manifest that names them."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from pipeline.ports.publishing import NameChange
from pipeline.steps.facts import NameIndex, TextFacts
from pipeline.steps.iris import bind_facts
from schemas.access import AccessRule
from schemas.change_event import split_document_key
from schemas.document import ChunkRef, Document, IndexedChunk, Manifest
from schemas.knowledge import Fact, FactDraft
from schemas.messages import Prepared
from schemas.outcome import Outcome
from schemas.position import as_sent


class Linked(msgspec.Struct):
    """A prepared document with its facts and the manifest that will make it visible."""

    prepared: Prepared
    manifest: Manifest
    drafts: list[FactDraft] = []
    facts: list[Fact] = []


def link(prepared: Prepared, text_facts: TextFacts, names: NameIndex) -> Linked:
    """Return a document with its facts; a delete, and a document at stage text, has none."""
    document, record = prepared.document, prepared.record
    if document is None:
        return Linked(prepared, _deleted(prepared))
    drafts: list[FactDraft] = []
    if prepared.stage == "full":
        drafts = [*document.facts, *text_facts.find(document, prepared.chunks, prepared.analyses, names)]
    version = _facts_version(record.position, drafts) if drafts else ""
    manifest = Manifest(
        document=record.document,
        op="upsert",
        position=record.position,
        version=record.version,
        stage=prepared.stage,
        title=document.title,
        type=document.type,
        updated_at=document.updated_at,
        access=document.access,
        chunks=tuple(ChunkRef(c.id, c.start, c.end) for c in prepared.chunks),
        facts_version=version,
        fields=document.fields,
        restricted_fields=document.restricted_fields,
    )
    return Linked(prepared, manifest, drafts, bind_facts(drafts, document, version, record.occurred_at))


def holds_changed_name(linked: Linked, changes: Sequence[NameChange]) -> bool:
    """Say whether a document's text may hold a name that changed after it was linked."""
    if not changes or linked.prepared.document is None or linked.prepared.stage != "full":
        return False
    changed = NameIndex()
    for change in changes:
        changed.replace(change.name, [("", change.name)])  # what it stands for, or stood for, plays no part
    return any(changed.find(piece.text) for piece in linked.prepared.chunks)


def access_rules(linked: Sequence[Linked]) -> dict[str, AccessRule]:
    """Return the access classes that documents and their facts have."""
    rules: dict[str, AccessRule] = {}
    for one in linked:
        document = one.prepared.document
        if document is not None:
            met = [document.access.met(d.access) for d in one.drafts if d.access is not None]
            rules.update({rule.access_class(): rule for rule in (document.access, *met)})
    return rules


def indexed_chunks(prepared: Prepared, vector_model: str) -> list[IndexedChunk]:
    """Return a document's chunks as a chunk index keeps them."""
    document = prepared.document
    if document is None:
        return []
    vectors: Sequence[bytes | None] = prepared.vectors or [None] * len(prepared.chunks)
    sentences = prepared.sentence_vectors or [b""] * len(prepared.chunks)
    parts = zip(prepared.chunks, prepared.analyses, prepared.title_terms, vectors, sentences, strict=True)
    shared = _shared(document)
    return [
        IndexedChunk(
            id=piece.id,
            text=piece.text,
            headings=piece.headings,
            analysis=analysis,
            title_terms=title_terms,
            vector=vector,
            vector_model=vector_model if vector is not None else "",
            sentence_vectors=its,
            **shared,
        )
        for piece, analysis, title_terms, vector, its in parts
    ]


def _shared(document: Document) -> dict[str, Any]:
    source, collection, _ = split_document_key(document.key)
    return {
        "document": document.key,
        "title": document.title,
        "access_class": document.access.access_class(),
        "source": source,
        "collection": collection,
        "type": document.type,
        "updated_at": document.updated_at,
        "fields": {k: v for k, v in document.fields.items() if k not in document.restricted_fields},
    }


def outcomes(linked: Linked) -> tuple[Outcome, ...]:
    """Return how the events end that were folded into a version: the last one applied, the others superseded."""
    origins, manifest = linked.prepared.record.origins, linked.manifest
    return tuple(
        Outcome(
            event=origin,
            document=manifest.document,
            position=manifest.position,
            outcome="applied" if n == len(origins) else "superseded",
        )
        for n, origin in enumerate(origins, start=1)
    )


def _deleted(prepared: Prepared) -> Manifest:
    record = prepared.record
    return Manifest(
        document=record.document,
        op="delete",
        position=record.position,
        version=record.version,
        stage="full",
        updated_at=record.occurred_at,
    )


def _facts_version(position: str, drafts: Sequence[FactDraft]) -> str:
    """Return 16 hex digits that change with the position and with what the text was linked to."""
    return hashlib.sha256(msgspec.json.encode([as_sent(position), drafts])).hexdigest()[:16]
