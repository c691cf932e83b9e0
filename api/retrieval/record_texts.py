"""Texts of chunks without the chunk index: made again from the records, as they were made for the index.

Mapping and chunking are pure, and a chunk's id holds the hash of its text: what the manifest names is what
stands in the index, or it is left out. So answers go on while the index is away.
"""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from pipeline.steps.chunk import ChunkLimits, chunk
from pipeline.steps.map import map_record
from schemas.change_event import split_document_key
from schemas.document import Analysis, Chunk, ChunkRef, Manifest
from schemas.record import Record

MAX_CHUNKS = 300
"""Analyzed for one question."""
_ANY_NUMBER = ChunkLimits(max_chunks=1_000_000)


class RecordChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that the manifest names, with its text from the record."""

    ref: ChunkRef
    manifest: Manifest
    text: str
    title: str
    headings: tuple[str, ...]


async def record_chunks(reader: Reader, documents: Sequence[str]) -> list[RecordChunk]:
    """Return the chunks of these documents, in order; those whose record is newer or cut otherwise are absent."""
    manifests = await reader.manifests(documents)
    records = await reader.runtime.state.records(sorted(manifests))
    return await asyncio.to_thread(_cut, documents, manifests, records, reader.runtime.mappings)


def _cut(
    documents: Sequence[str], manifests: Mapping[str, Manifest], records: Mapping[str, Record], mappings: Mappings
) -> list[RecordChunk]:
    found: list[RecordChunk] = []
    for key in documents:
        manifest, record = manifests.get(key), records.get(key)
        if manifest is None or record is None or record.position != manifest.position:
            continue
        title, pieces = _pieces(record, mappings)
        named = {ref.id: ref for ref in manifest.chunks}
        found += [
            RecordChunk(ref=named[piece.id], manifest=manifest, text=piece.text, title=title, headings=piece.headings)
            for piece in pieces
            if piece.id in named
        ]
    return found


def _pieces(record: Record, mappings: Mappings) -> tuple[str, list[Chunk]]:
    source, collection, _ = split_document_key(record.document)
    try:
        document = map_record(record, mappings.of(source, collection))
        return document.title, chunk(document, _ANY_NUMBER)
    except InvalidEvent:  # it could be mapped when it was indexed: the mapping is another one now
        return "", []


async def ranked(
    reader: Reader, question: AnalyzedQuestion, chunks: Sequence[RecordChunk]
) -> list[tuple[float, int, RecordChunk]]:
    """Return (share of the question's terms that it holds, asked identifiers that it holds, chunk), best first."""
    some = chunks[:MAX_CHUNKS]
    analyses = await reader.runtime.analyzer.tokens([_read(one) for one in some])
    asked = set(question.lexical.terms)
    scored = [
        (_share(asked, analysis), len(set(question.identifiers) & set(analysis.identifiers)), one)
        for analysis, one in zip(analyses, some, strict=True)
    ]
    return sorted(scored, key=lambda one: (-one[1], -one[0], one[2].manifest.document, one[2].ref.start))


async def terms_of(reader: Reader, chunks: Sequence[RecordChunk]) -> list[frozenset[str]]:
    """Return the index terms of text, title and headings."""
    analyses = await reader.runtime.analyzer.tokens([_read(one) for one in chunks])
    return [frozenset(analysis.terms) for analysis in analyses]


def _read(one: RecordChunk) -> str:
    return "\n".join((one.title, *one.headings, one.text))


def _share(asked: set[str], analysis: Analysis) -> float:
    return len(asked & set(analysis.terms)) / len(asked) if asked else 0.0
