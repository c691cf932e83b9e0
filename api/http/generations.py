"""Replays and generations: build, look, compare, promote, roll back, prune."""

from typing import Any

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from api.http.asker import operator_only
from api.http.body import StrictBody, check_json, decode_body, json_only
from api.http.durations import seconds_of
from api.http.given import Given
from api.retrieval.access import Asker
from api.retrieval.rankings import Rankings, compare_rankings
from pipeline.ports.generations import ReplayPlan
from pipeline.ports.replays import Comparison, GenerationStatus, Promoted, Started
from pipeline.ports.runtime import Runtime

LONGEST_WAIT_S = 600.0


class SwitchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to switch."""

    force: bool = False
    """Even to a generation that is incomplete or older than the live one."""
    wait: str = "30s"
    """How long to wait for what is on its way."""


class PruneRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to remove."""

    generations: tuple[str, ...] = ()
    """Empty: all that were live before."""


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to compare."""

    first: str
    second: str
    collections: tuple[str, ...] = ()
    """`source/collection`; empty is all."""
    questions: tuple[str, ...] = ()
    """Asked of both; their first ten documents are compared."""


class ComparisonAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How two generations differ."""

    exact: bool
    """Records and decisions are equal."""
    comparison: Comparison
    rankings: Rankings | None


class GenerationList(msgspec.Struct, frozen=True, kw_only=True):
    """All generations, oldest first."""

    generations: list[GenerationStatus]


@get("/v1/generations", tags=["operations"], summary="Generations with the progress of rebuilds")
async def generations(asker: Given[Asker], runtime: Given[Runtime]) -> GenerationList:
    """Show state, versions, progress, rate, time left, and why nothing moves."""
    operator_only(asker)
    return GenerationList(generations=await runtime.replays.statuses())


@post("/v1/replay", status_code=200, tags=["operations"], summary="Rebuild indexes, or do documents again")
async def replay(
    request: Request[Any, Any, Any], asker: Given[Asker], runtime: Given[Runtime]
) -> Response[dict[str, Any] | Started]:
    """With a plan in the body (`into`, `from`, `collections`, `documents`, `holding`, `current`): begin, or go on,
    and answer 202 at once. Without: build a new generation, switch to it, remove the old ones, and answer then."""
    operator_only(asker)
    check_json(request)
    body = await request.body()
    if not body:
        return Response(await runtime.replay(), status_code=200)
    return Response(await runtime.replays.start(decode_body(body, ReplayPlan)), status_code=202)


@post(
    "/v1/generations/{name:str}/promote",
    status_code=200,
    dto=StrictBody[SwitchRequest],
    return_dto=None,
    guards=[json_only],
    tags=["operations"],
    summary="Make a generation live",
)
async def promote(
    name: FromPath[str], data: JSONBody[SwitchRequest], asker: Given[Asker], runtime: Given[Runtime]
) -> Promoted:
    """One row, all stores at once; 409 says why not, and what to do."""
    operator_only(asker)
    wait_s = seconds_of(data.wait, "/wait", LONGEST_WAIT_S)
    return await runtime.replays.promote(name, force=data.force, wait_s=wait_s)


@post(
    "/v1/generations/rollback",
    status_code=200,
    dto=StrictBody[SwitchRequest],
    return_dto=None,
    guards=[json_only],
    tags=["operations"],
    summary="Make the generation live that was so before",
)
async def rollback(data: JSONBody[SwitchRequest], asker: Given[Asker], runtime: Given[Runtime]) -> Promoted:
    """Go back to the one before; it followed all changes."""
    operator_only(asker)
    return await runtime.replays.rollback(force=data.force, wait_s=seconds_of(data.wait, "/wait", LONGEST_WAIT_S))


@post(
    "/v1/generations/prune",
    status_code=200,
    dto=StrictBody[PruneRequest],
    return_dto=None,
    guards=[json_only],
    tags=["operations"],
    summary="Remove generations",
)
async def prune(data: JSONBody[PruneRequest], asker: Given[Asker], runtime: Given[Runtime]) -> dict[str, list[str]]:
    """Remove those named, else all that were live before; never the live one. Waits for those who still read them."""
    operator_only(asker)
    return {"pruned": await runtime.replays.prune(data.generations)}


@post(
    "/v1/generations/compare",
    status_code=200,
    dto=StrictBody[CompareRequest],
    return_dto=None,
    guards=[json_only],
    tags=["operations"],
    summary="Compare two generations",
)
async def compare(data: JSONBody[CompareRequest], asker: Given[Asker], runtime: Given[Runtime]) -> ComparisonAnswer:
    """Read both back; answers when all is read."""
    operator_only(asker)
    replays = runtime.replays
    comparison = await replays.compare(data.first, data.second, data.collections)
    rankings = None
    if data.questions:
        async with replays.indexes(data.first) as first, replays.indexes(data.second) as second:
            rankings = await compare_rankings(runtime, asker, (first, second), data.questions)
    return ComparisonAnswer(exact=comparison.exact, comparison=comparison, rankings=rankings)


HANDLERS: list[HTTPRouteHandler] = [generations, replay, promote, rollback, prune, compare]
