"""Passages: chunks with their text, as evidence is made of them."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from api.retrieval.filters import Where
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.search import Candidate, SearchPlan, search
from schemas.query import PathStep


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that may become evidence; `text` stands at `candidate.ref` in the document's body."""

    candidate: Candidate
    text: str
    headings: tuple[str, ...]
    terms: frozenset[str]
    """Index terms of text, title and headings."""
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


async def read_passages(reader: Reader, candidates: Sequence[Candidate], source: str) -> list[Passage]:
    """Read the texts; chunks that were removed meanwhile, or do not fit their offsets, are left out."""
    chunks = await reader.indexes.chunks.get([candidate.id for candidate in candidates], vectors=False)
    highest = max((candidate.score for candidate in candidates), default=0.0) or 1.0
    return [
        Passage(
            candidate=candidate,
            text=chunk.text,
            headings=chunk.headings,
            terms=frozenset((*chunk.analysis.terms, *chunk.title_terms)),
            score=round(candidate.score / highest, 6),
            sources=(source,),
        )
        for candidate in candidates
        if (chunk := chunks.get(candidate.id)) and len(chunk.text) == candidate.ref.end - candidate.ref.start
    ]


async def best_chunks(
    reader: Reader, question: AnalyzedQuestion, where: Where, documents: Sequence[str], per_document: int
) -> list[Candidate]:
    """Return the best chunks of each document for the question; its first chunk when nothing matches."""
    allowed = [key for key in documents if not where.documents or key in where.documents]
    if not allowed:
        return []
    narrowed = msgspec.structs.replace(where, documents=tuple(allowed))
    plan = SearchPlan(where=narrowed, wanted=len(allowed) * per_document, per_document=per_document)
    found = await search(reader, question, plan)
    missing = set(allowed) - {candidate.document for candidate in found}
    manifests = await reader.manifests(missing)
    return found + [
        Candidate(id=manifest.chunks[0].id, document=key, manifest=manifest, ref=manifest.chunks[0], score=0.0)
        for key, manifest in sorted(manifests.items())
        if manifest.chunks and where.matches(manifest, reader.asker)
    ]
