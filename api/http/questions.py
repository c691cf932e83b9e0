"""`POST /v1/query` and its stream."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import JSONBody
from litestar.response import ServerSentEvent, ServerSentEventMessage

from api.answering.flow import Flow
from api.http.body import StrictBody, json_only
from api.http.given import Given
from api.http.later import NotYet
from api.http.metrics import Metrics
from api.http.problems import log_failure, of_exception
from api.http.waiting import Waited, freshness_info, wait_for
from api.options import ApiOptions
from api.retrieval.access import Asker
from api.retrieval.filters import compile_filters
from pipeline.errors import InvalidQuery
from pipeline.ports.runtime import Runtime
from schemas.query import FreshnessInfo, QueryRequest, QueryResponse


async def _admit(
    data: QueryRequest, asker: Asker, runtime: Runtime, options: ApiOptions
) -> tuple[Waited, FreshnessInfo]:
    """Check the request, wait for its token, and note how fresh the stores are before anything is read."""
    refuse_later(data)
    if not data.question.strip():
        raise InvalidQuery("the question is empty", pointer="/question")
    compile_filters(data.filters, runtime.mappings)
    waited = await wait_for(runtime, asker, data.min_freshness, data.wait, options)
    return waited, await freshness_info(runtime, waited.ms)


def refuse_later(data: QueryRequest) -> None:
    """Answer 501 for what the contract names and this version does not do."""
    if data.mode not in ("auto", "plain"):
        raise NotYet(f"mode={data.mode} is not in this version; use auto or plain.")
    if data.source in ("direct", "web"):
        raise NotYet(f"source={data.source} needs a language model, and this version uses none.")
    if data.session_id is not None:
        raise NotYet("Conversations (session_id) are not in this version.")
    if data.as_of is not None:
        raise NotYet("Questions about the past (as_of) are not in this version.")


@post(
    "/v1/query",
    status_code=200,
    dto=StrictBody[QueryRequest],
    return_dto=None,
    guards=[json_only],
    tags=["questions"],
    summary="Ask a question",
)
async def query(
    data: JSONBody[QueryRequest],
    asker: Given[Asker],
    runtime: Given[Runtime],
    flow: Given[Flow],
    options: Given[ApiOptions],
    metrics: Given[Metrics],
) -> QueryResponse:
    """Answer with citations."""
    waited, freshness = await _admit(data, asker, runtime, options)
    response: QueryResponse | None = None
    async for name, payload in flow.run(data, asker, freshness, exact=waited.exact):
        if name == "done":
            response = payload
    assert response is not None
    metrics.answered(response.route.strategy, response.answer.answerable)
    return response


@post(
    "/v1/query/stream",
    status_code=200,
    dto=StrictBody[QueryRequest],
    return_dto=None,
    guards=[json_only],
    tags=["questions"],
    summary="Ask a question, answered as server-sent events",
)
async def query_stream(
    request: Request[Any, Any, Any],
    data: JSONBody[QueryRequest],
    asker: Given[Asker],
    runtime: Given[Runtime],
    flow: Given[Flow],
    options: Given[ApiOptions],
    metrics: Given[Metrics],
) -> ServerSentEvent:
    """Stream `route`, `evidence`, `token`, `check`, `done`; `error` with a problem when it fails midway."""
    waited, freshness = await _admit(data, asker, runtime, options)
    return ServerSentEvent(_messages(flow, data, asker, freshness, waited, metrics))


async def _messages(
    flow: Flow, data: QueryRequest, asker: Asker, freshness: FreshnessInfo, waited: Waited, metrics: Metrics
) -> AsyncIterator[ServerSentEventMessage]:
    try:
        async for name, payload in flow.run(data, asker, freshness, exact=waited.exact):
            if isinstance(payload, QueryResponse):
                metrics.answered(payload.route.strategy, payload.answer.answerable)
            yield _message(name, payload)
    except Exception as error:  # noqa: BLE001 - the status is sent already: the problem travels as an event
        what, _ = of_exception(error)
        if what.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log_failure("stream failed", error)
        yield _message("error", what.body())


def _message(name: str, payload: Any) -> ServerSentEventMessage:
    return ServerSentEventMessage(event=name, data=msgspec.json.encode(payload).decode())


HANDLERS: list[HTTPRouteHandler] = [query, query_stream]
