"""`POST /v1/search`: retrieval alone."""

import asyncio
import time
from collections.abc import Sequence

import msgspec
from litestar import post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody

from api.http.body import StrictBody, json_only
from api.http.given import Given
from api.http.waiting import wait_for
from api.options import ApiOptions
from api.retrieval.access import Asker
from api.retrieval.context import contexts, snippet
from api.retrieval.explain_search import explain_search
from api.retrieval.facets import facets
from api.retrieval.filters import Where, compile_filters
from api.retrieval.highlight import highlighted
from api.retrieval.paging import Page, decode, digest, encode, first_page, next_page
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion, analyze_question, by_words
from api.retrieval.reader import Reader, document_info, open_reader
from api.retrieval.search import CHUNKS_PER_DOCUMENT, SearchPlan
from api.retrieval.stages import searched
from api.retrieval.suggest import Suggester, found_little
from pipeline.errors import BackendUnavailable, InvalidQuery
from pipeline.ports.runtime import Runtime
from schemas.around import ContextPart
from schemas.query import HitParts, SearchHit, SearchRequest, SearchResponse

_ALL_CHUNKS = 1_000
"""Who asks for certain documents wants to see inside them."""


class SearchService(msgspec.Struct, frozen=True):
    """All that a search is given, as one dependency: for several, Litestar starts a task each."""

    asker: Asker
    runtime: Runtime
    options: ApiOptions
    suggester: Suggester


@post(
    "/v1/search",
    status_code=200,
    dto=StrictBody[SearchRequest],
    return_dto=None,
    guards=[json_only],
    tags=["questions"],
    summary="Search the texts",
)
async def search_texts(data: JSONBody[SearchRequest], search_service: Given[SearchService]) -> SearchResponse:
    """Return chunks, best first."""
    asker, runtime, options = search_service.asker, search_service.runtime, search_service.options
    where = compile_filters(data.filters, runtime.mappings)
    await wait_for(runtime, asker, data.min_freshness, data.wait, options)
    started = time.perf_counter()
    question = await analyze_question(runtime, data.query)
    analyzed = time.perf_counter()
    plan = _plan(data, where)
    async with open_reader(runtime, asker) as reader:
        question = by_words(question, reader.other_model)
        page = await _page(reader, question, plan, data, options.source_timeout_s)
        little = not data.offset and not data.cursor and found_little(question, page.passages)
        suggestions = await search_service.suggester.did_you_mean(reader, question) if little else []
        around = await contexts(reader, page.passages, data.expand) if data.expand else None
        explained = explain_search(reader, question, plan, page.found) if data.explain else None
    passages, found = page.passages, page.found
    runtime.hurry(sorted({p.document for p in passages if p.candidate.manifest.stage == "text"}))
    timings = {"analyze": analyzed - started, "retrieve": time.perf_counter() - analyzed, "rerank": reader.rerank_s}
    timings["total"] = time.perf_counter() - started
    return SearchResponse(
        hits=_hits(passages, await highlighted(runtime.analyzer, question, passages), around, data.snippet),
        query_type=question.query_type,
        total=page.total,
        facets=facets(found),
        timings_ms={name: round(seconds * 1000, 2) for name, seconds in timings.items()},
        next=encode(page.next) if page.next else None,
        suggestions=suggestions,
        warnings=list(dict.fromkeys((*question.notes, *reader.notes))),
        explanation=explained,
    )


def _plan(data: SearchRequest, where: Where) -> SearchPlan:
    return SearchPlan(
        where=where,
        wanted=data.offset + data.top_k,
        fusion=data.fusion,
        alpha=data.alpha,
        rerank=data.rerank,
        per_document=_ALL_CHUNKS if where.documents else CHUNKS_PER_DOCUMENT,
    )


async def _page(
    reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, data: SearchRequest, timeout_s: float
) -> Page:
    """Search; nothing else could answer, so an index that does not is an error."""
    try:
        async with asyncio.timeout(timeout_s):
            if data.cursor is None:
                found, passages = await searched(reader, question, plan, data.offset)
                return Page(passages=passages, total=len(found), found=found)
            if data.offset:
                raise InvalidQuery("A cursor knows where it stands: send no offset with it", pointer="/offset")
            asked = digest(data.query, data.filters, data.alpha, data.fusion, data.rerank)
            if not data.cursor:
                return await first_page(reader, question, plan, asked, time.time())
            return await next_page(reader, question, plan, decode(data.cursor, asked, time.time()), data.top_k)
    except TimeoutError as error:
        raise BackendUnavailable(f"the chunk index did not answer within {timeout_s:g} s; ask again") from error


def _hits(
    passages: Sequence[Passage],
    marked: Sequence[list[tuple[int, int]]],
    around: Sequence[list[ContextPart]] | None,
    size: int | None,
) -> list[SearchHit]:
    return [
        SearchHit(
            chunk_id=passage.candidate.id,
            document=document_info(passage.candidate.manifest),
            text=passage.text,
            span=(passage.candidate.ref.start, passage.candidate.ref.end),
            highlights=spans,
            score=round(passage.candidate.score, 6),
            stage=passage.candidate.manifest.stage,
            parts=HitParts(
                bm25=passage.candidate.bm25,
                dense=passage.candidate.dense,
                exact_identifier=passage.candidate.exact > passage.candidate.named,
                named_identifier=passage.candidate.named > 0,
                rerank=passage.candidate.rerank,
                lists=passage.candidate.lists,
            ),
            context=around[n] if around else None,
            snippet=snippet(passage.text, passage.candidate.ref.start, spans, size) if size else None,
        )
        for n, (passage, spans) in enumerate(zip(passages, marked, strict=True))
    ]


HANDLERS: list[HTTPRouteHandler] = [search_texts]
