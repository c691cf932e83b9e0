"""Hybrid search over chunks: both lists, fused, checked against the manifests, exact identifiers first."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import ParamSpec, TypeVar

import msgspec

from api.retrieval.beside import beside
from api.retrieval.filters import Where
from api.retrieval.fusion import Fused, fuse
from api.retrieval.lexical import find_words, joined
from api.retrieval.naming import Naming, find_named, merged
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex, IndexHit, LexicalQuery
from pipeline.ranking import PLAIN_ALPHA
from schemas.document import ChunkRef, Manifest
from schemas.query import Fusion

P = ParamSpec("P")
T = TypeVar("T")

CHUNKS_PER_DOCUMENT = 2
CHUNKS_LOOKED_AT = 4
"""Of each document, from which the second stage chooses: the first likes short chunks under a title with the words."""
_OVERFETCH = 3
_FEWEST = 50
_MOST = 600
_REFETCH = 4
_MANY = 300
"""Hits of both lists: some milliseconds, during which nothing else would be served."""
_TRIES = 3
"""Fetches while documents change under the search."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A live chunk that the asker may read."""

    id: str
    document: str
    manifest: Manifest
    ref: ChunkRef
    score: float
    bm25: int | None = None
    dense: int | None = None
    bm25_score: float | None = None
    dense_score: float | None = None
    sentence_score: float | None = None
    """Likeness of the nearest of its sentences; None when there are none to tell apart, or nobody looked."""
    exact: int = 0
    """How many of the asked identifiers the chunk holds, exactly, or its document is named by."""
    named: int = 0
    """How many of these only its document is named by."""
    rerank: float | None = None
    """The second stage's score, on its own scale; None when it was not reranked."""
    lists: dict[str, float] = {}
    """Scores in further lists, by their names."""


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to search."""

    where: Where
    wanted: int
    fusion: Fusion = "auto"
    alpha: float | None = None
    per_document: int = CHUNKS_PER_DOCUMENT
    looked_at: int = 0
    """Chunks of each document to return where `per_document` of them will be chosen; never fewer than that."""
    rerank: bool = True
    """False leaves the order of the first stage, whatever is configured."""


class _Lists(msgspec.Struct, frozen=True):
    lexical: list[IndexHit]
    dense: list[IndexHit]
    holders: dict[str, list[IndexHit]]
    """Chunks that hold each of the asked identifiers."""
    naming: Naming
    unknown: tuple[str, ...]
    """Asked identifiers that no chunk holds."""
    full: bool
    """True when a list was cut at its limit, so that more may be there."""


async def search(reader: Reader, question: AnalyzedQuestion, plan: SearchPlan) -> list[Candidate]:
    """Return live, permitted, matching chunks, best first, at most `per_document` (or `looked_at`) of each document.

    More than `wanted` may come back; when fewer survive the checks, one larger fetch is made. Where a document
    changed between the index's answer and the look at its manifest, the index is asked again.
    """
    limit = min(_MOST, max(_FEWEST, plan.wanted * _OVERFETCH))
    found, full = await _settled(reader, question, plan, limit)
    if full and not enough(found, plan.per_document, plan.wanted):
        found, _ = await _settled(reader, question, plan, limit * _REFETCH)
    if not found and plan.where.unmapped and not plan.where.documents:
        names = ", ".join(plan.where.unmapped)
        reader.notes.append(f"nothing passes the filter: no mapping names the fields {names}; next: check their names")
    return found


async def _settled(
    reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, limit: int
) -> tuple[list[Candidate], bool]:
    """Fetch and check; return also whether more may be there."""
    moved: set[str] = set()
    for _ in range(_TRIES):
        lists = await _fetch(reader, question, plan.where, limit)
        found, stale = await _checked(reader, question, plan, lists)
        if stale <= moved:  # what stays stale waits to be collected: asking again would not help
            break
        moved = stale
    reader.named, reader.rest = lists.naming.documents, lists.naming.rest
    if lists.unknown and not plan.where.documents:  # a page looks in some documents only, and evidence of a graph too
        reader.notes.append(
            f"no text that you may see, and that the filters let pass, holds {', '.join(lists.unknown)}"
        )
    return found, lists.full


async def _fetch(reader: Reader, question: AnalyzedQuestion, wanted: Where, limit: int) -> _Lists:
    """Ask the index for both lists, and for the chunks that hold each identifier, at once; then for those near them."""
    chunks, asked, where = reader.indexes.chunks, question.identifiers, wanted.chunk_filter(reader.classes)
    lexical, dense, *exact = await beside(
        find_words(chunks, question, where, limit),
        chunks.dense(question.vector, where, limit) if question.vector else _nothing(),
        *(_holding(chunks, question, name, where, limit) for name in asked),
    )
    if question.vector and any(len(found) >= limit for found in exact):
        within = msgspec.structs.replace(where, identifiers=asked)
        dense = joined(dense, await chunks.dense(question.vector, within, limit))
    full = any(len(found) >= limit for found in (lexical, dense, *exact))
    holders = dict(zip(asked, exact, strict=True))
    naming = await find_named(reader, question, wanted, holders, chain(lexical, dense), limit)
    lexical, dense = merged(lexical, naming.lexical), merged(dense, naming.dense)
    unknown = tuple(name for name, found in holders.items() if not found and name not in naming.documents)
    return _Lists(lexical, dense, holders, naming, unknown, full)


async def _holding(
    chunks: ChunkIndex, question: AnalyzedQuestion, name: str, where: ChunkFilter, limit: int
) -> list[IndexHit]:
    """Return chunks that hold an identifier; where there are too many, also the best of them by the rest of the
    question: words, other identifiers, vector."""
    found = await chunks.lexical(LexicalQuery(terms=(), identifiers=(name,)), where, limit)
    if len(found) < limit:
        return found
    within = msgspec.structs.replace(where, identifiers=(name,))
    rest = LexicalQuery(question.lexical.terms, identifiers=tuple(i for i in question.identifiers if i != name))
    worded, near = await beside(
        chunks.lexical(rest, within, limit) if rest.terms or rest.identifiers else _nothing(),
        chunks.dense(question.vector, within, limit) if question.vector else _nothing(),
    )
    return joined(joined(found, worded), near)


async def _nothing() -> list[IndexHit]:
    return []


async def _checked(
    reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, lists: _Lists
) -> tuple[list[Candidate], set[str]]:
    """Fuse, let the manifests decide, put exact identifiers first, thin out documents.

    Returns also the documents of which no hit stands, though they do: they changed after the index had answered.
    """
    alpha = dense_weight(reader, question, plan)
    many = len(lists.lexical) + len(lists.dense)
    fused = await _run(many, _fused, lists, plan.fusion, alpha)
    manifests = await reader.manifests(hit.document for hit in fused)
    asked = {hit.id for hit in fused}
    refs = {ref.id: (its, ref) for its in manifests.values() for ref in its.chunks if ref.id in asked}
    there = {key for key, manifest in manifests.items() if manifest.chunks}
    stale = there - {manifest.document for manifest, _ in refs.values()}
    if not plan.where.open:
        passing = {key for key, manifest in manifests.items() if plan.where.matches(manifest, reader.asker)}
        refs = {chunk: place for chunk, place in refs.items() if place[0].document in passing}
    return await _run(many, _live, fused, refs, lists, max(plan.per_document, plan.looked_at)), stale


async def _run(many: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Work on few hits here, on many in a thread: handing over costs as much as some 50 hits."""
    return await asyncio.to_thread(work, *args, **kwargs) if many > _MANY else work(*args, **kwargs)


def dense_weight(reader: Reader, question: AnalyzedQuestion, plan: SearchPlan) -> float:
    """Return the weight of the dense list: as asked, else what was fitted for the type of the question."""
    if plan.alpha is not None:
        return plan.alpha
    return reader.runtime.ranking.alphas.get(question.query_type, PLAIN_ALPHA)


def _fused(lists: _Lists, fusion: Fusion, alpha: float) -> list[Fused]:
    """Fuse both lists; chunks that only hold an identifier come last, and the first ones of documents it names."""
    fused = fuse(lists.lexical, lists.dense, fusion, alpha)
    known = {hit.id for hit in fused}
    others = chain(*lists.holders.values(), lists.naming.first)
    extra = {hit.id: hit.document for hit in others if hit.id not in known}
    return fused + [Fused(chunk, document, 0.0, None, None) for chunk, document in extra.items()]


def _live(
    fused: Sequence[Fused],
    refs: Mapping[str, tuple[Manifest, ChunkRef]],
    lists: _Lists,
    per_document: int,
) -> list[Candidate]:
    """Keep what the manifests name and the filters let pass, in order."""
    held = Counter(hit.id for hits in lists.holders.values() for hit in hits)
    only_named = _only_named(fused, lists)
    found = [_candidate(hit, *refs[hit.id], held[hit.id], only_named[hit.id]) for hit in fused if hit.id in refs]
    found.sort(key=lambda c: (-c.exact, -c.score, c.document, c.ref.start, c.id))
    return thinned(found, per_document)


def _only_named(fused: Sequence[Fused], lists: _Lists) -> Counter[str]:
    """Count for each chunk the identifiers that it does not hold, but its document is named by."""
    found: Counter[str] = Counter()
    for name, documents in lists.naming.documents.items():
        holding, own = {hit.id for hit in lists.holders[name]}, set(documents)
        found.update(hit.id for hit in fused if hit.document in own and hit.id not in holding)
    return found


def _candidate(hit: Fused, manifest: Manifest, ref: ChunkRef, held: int, named: int) -> Candidate:
    """Return the hit with what the manifest says of it."""
    return Candidate(
        id=hit.id,
        document=hit.document,
        manifest=manifest,
        ref=ref,
        score=hit.score,
        bm25=hit.bm25,
        dense=hit.dense,
        bm25_score=hit.bm25_score,
        dense_score=hit.dense_score,
        exact=held + named,
        named=named,
    )


def enough(found: Sequence[Candidate], per_document: int, wanted: int) -> bool:
    """Say whether so many are left when the list is thinned; looks no further than it must."""
    seen: dict[str, int] = {}
    for candidate in found if wanted else ():
        number = seen[candidate.document] = seen.get(candidate.document, 0) + 1
        wanted -= number <= per_document
        if not wanted:
            break
    return not wanted


def thinned(found: Sequence[Candidate], per_document: int) -> list[Candidate]:
    """Keep the best chunks of each document, so that a long one does not fill the list."""
    seen: dict[str, int] = {}
    kept = []
    for candidate in found:
        document = candidate.document
        number = seen[document] = seen.get(document, 0) + 1
        if number <= per_document:
            kept.append(candidate)
    return kept
