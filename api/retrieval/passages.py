"""Passages: chunks with their text, as evidence is made of them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from api.retrieval.filters import Where
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.record_texts import ranked, record_chunks, terms_of
from api.retrieval.search import Candidate, SearchPlan, search
from pipeline.errors import BackendUnavailable
from schemas.query import PathStep

_INDEX_S = 3.0
"""So long the chunk index may take over texts, less than a source has: the records can still answer then."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that may become evidence; `text` stands at `candidate.ref` in the document's body."""

    candidate: Candidate
    text: str
    headings: tuple[str, ...]
    sequence: tuple[str, ...] = ()
    """Index terms of the text in reading order; empty when the text came from the record."""
    title_terms: tuple[str, ...] = ()
    """Of title and headings; empty likewise."""
    bigrams: Sequence[str] = ()
    """Pairs of characters of the text; empty likewise."""
    sentence_vectors: bytes = b""
    """Empty likewise, or where the chunk has none."""
    unordered: frozenset[str] = frozenset()
    """Index terms of text, title and headings when the text came from the record, else empty."""
    score: float
    sources: tuple[str, ...]
    kind: Literal["chunk", "record"] = "chunk"
    path: tuple[PathStep, ...] = ()
    strength: float = 0.0
    """Of the path, 0 to 1."""
    foreign: bool = False
    """True when the document is about other things, and at most mentions what was asked about."""
    fields: dict[str, Any] | None = None

    @property
    def document(self) -> str:
        """The document's key."""
        return self.candidate.document

    @property
    def terms(self) -> frozenset[str]:
        """Index terms of text, title and headings. Made when asked for: a search asks for its page alone."""
        return self.unordered or frozenset((*self.sequence, *self.title_terms))


async def read_passages(reader: Reader, candidates: Sequence[Candidate], source: str) -> list[Passage]:
    """Read the texts; chunks that were removed meanwhile, or do not fit their offsets, are left out.

    While the chunk index is away, the texts come from the records.
    """
    if not reader.chunks_away:
        try:
            async with asyncio.timeout(_INDEX_S):
                return await _indexed(reader, candidates, source)
        except (BackendUnavailable, TimeoutError):
            reader.chunks_away = True
    return await _recorded(reader, candidates, source)


async def _indexed(reader: Reader, candidates: Sequence[Candidate], source: str) -> list[Passage]:
    chunks = await reader.indexes.chunks.texts([candidate.id for candidate in candidates])
    highest = _highest(candidates)
    return [
        Passage(
            candidate=candidate,
            text=chunk.text,
            headings=chunk.headings,
            sequence=chunk.terms,
            title_terms=chunk.title_terms,
            bigrams=chunk.bigrams,
            sentence_vectors=chunk.sentence_vectors,
            score=round(candidate.score / highest, 6),
            sources=(source,),
        )
        for candidate in candidates
        if (chunk := chunks.get(candidate.id)) and len(chunk.text) == candidate.ref.end - candidate.ref.start
    ]


async def _recorded(reader: Reader, candidates: Sequence[Candidate], source: str) -> list[Passage]:
    documents = list(dict.fromkeys(candidate.document for candidate in candidates))
    asked = {candidate.id for candidate in candidates}
    chunks = [one for one in await record_chunks(reader, documents) if one.ref.id in asked]
    terms = await terms_of(reader, chunks)
    found = {one.ref.id: (one, its) for one, its in zip(chunks, terms, strict=True)}
    highest = _highest(candidates)
    return [
        Passage(
            candidate=candidate,
            text=one.text,
            headings=one.headings,
            unordered=its,
            score=round(candidate.score / highest, 6),
            sources=(source,),
        )
        for candidate in candidates
        if candidate.id in found
        for one, its in [found[candidate.id]]
    ]


def _highest(candidates: Sequence[Candidate]) -> float:
    return max((one.score for one in candidates), default=0.0) or 1.0


def moved(passage: Passage, place: Passage, **known: Any) -> Passage:
    """Return a passage at another's place, with what is now known of it (members of its candidate).

    Places keep their scores, so that what is compared with those (thresholds, the rest of a list) still means the same.
    """
    candidate = msgspec.structs.replace(passage.candidate, score=place.candidate.score, **known)
    return msgspec.structs.replace(passage, candidate=candidate, score=place.score)


async def best_chunks(
    reader: Reader, question: AnalyzedQuestion, where: Where, documents: Sequence[str], per_document: int
) -> list[Candidate]:
    """Return the best chunks of each document for the question; its first chunk when nothing matches."""
    allowed = [key for key in documents if not where.documents or key in where.documents]
    if not allowed:
        return []
    found = await _best_indexed(reader, question, where, allowed, per_document)
    missing = set(allowed) - {candidate.document for candidate in found}
    manifests = await reader.manifests(missing)
    return found + [
        Candidate(id=manifest.chunks[0].id, document=key, manifest=manifest, ref=manifest.chunks[0], score=0.0)
        for key, manifest in sorted(manifests.items())
        if manifest.chunks and where.matches(manifest, reader.asker)
    ]


async def _best_indexed(
    reader: Reader, question: AnalyzedQuestion, where: Where, documents: Sequence[str], per_document: int
) -> list[Candidate]:
    narrowed = msgspec.structs.replace(where, documents=tuple(documents))
    plan = SearchPlan(where=narrowed, wanted=len(documents) * per_document, per_document=per_document)
    if not reader.chunks_away:
        try:
            async with asyncio.timeout(_INDEX_S):
                return await search(reader, question, plan)
        except (BackendUnavailable, TimeoutError):
            reader.chunks_away = True
    return await _best_recorded(reader, question, where, documents, per_document)


async def _best_recorded(
    reader: Reader, question: AnalyzedQuestion, where: Where, documents: Sequence[str], per_document: int
) -> list[Candidate]:
    """Compare the question with the texts of these documents' records."""
    seen: Counter[str] = Counter()
    found = []
    for share, exact, one in await ranked(reader, question, await record_chunks(reader, documents)):
        key = one.manifest.document
        if (share or exact) and where.matches(one.manifest, reader.asker) and seen[key] < per_document:
            seen[key] += 1
            found.append(
                Candidate(
                    id=one.ref.id, document=key, manifest=one.manifest, ref=one.ref, score=share + exact, exact=exact
                )
            )
    return found
