"""`/v1/sources`: how far each source was read, and new epochs for restored databases."""

import msgspec
from litestar import get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from api.http.asker import operator_only
from api.http.given import Given
from api.retrieval.access import Asker
from pipeline.ports.runtime import Runtime
from pipeline.ports.source_operations import Forgotten, NewEpoch, SourceOverview


class SourceList(msgspec.Struct, frozen=True, kw_only=True):
    """All sources, by name."""

    sources: list[SourceOverview]
    warnings: list[str]
    """Sources that seem to have gone backwards, as a restored database does."""


@get("/v1/sources", tags=["operations"], summary="How far each source was read, its epoch, its collections")
async def sources(asker: Given[Asker], runtime: Given[Runtime]) -> SourceList:
    """Show every source that ever sent something."""
    operator_only(asker)
    return SourceList(sources=await runtime.sources.overview(), warnings=await runtime.sources.warnings())


@post("/v1/sources/{source:str}/epochs", status_code=200, tags=["operations"], summary="Begin a source's next epoch")
async def new_epoch(asker: Given[Asker], runtime: Given[Runtime], source: FromPath[str]) -> NewEpoch:
    """Let all that comes from now on be newer than everything before: the database was restored."""
    operator_only(asker)
    return await runtime.sources.new_epoch(source)


@post(
    "/v1/sources/{source:str}/forget-older",
    status_code=200,
    tags=["operations"],
    summary="Delete what the newest epoch has not brought back",
)
async def forget_older(asker: Given[Asker], runtime: Given[Runtime], source: FromPath[str]) -> Forgotten:
    """Call it when the snapshot after a new epoch was read: what it did not hold is not in the database any more."""
    operator_only(asker)
    return await runtime.sources.forget_older(source)


HANDLERS: list[HTTPRouteHandler] = [sources, new_epoch, forget_older]
