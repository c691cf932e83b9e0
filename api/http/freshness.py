"""`GET /v1/freshness`: how far each store is, and whether a token is satisfied."""

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery

from api.http.given import Given
from api.http.waiting import read_token
from api.retrieval.access import Asker
from pipeline.errors import EventDead, NotFresh
from pipeline.ports.runtime import Runtime, Watermarks


class TokenState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the events behind a token are."""

    satisfied: bool
    parts: int
    outcome: str = ""
    detail: str = ""


class FreshnessResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Watermarks, and the token's state when one was given."""

    watermarks: Watermarks
    token: TokenState | None = None


@get("/v1/freshness", tags=["operations"], summary="Watermarks and tokens")
async def freshness(
    asker: Given[Asker], runtime: Given[Runtime], token: FromQuery[str | None] = None
) -> FreshnessResponse:
    """Answer at once; `min_freshness` of a question is what waits."""
    marks = await runtime.watermarks()
    return FreshnessResponse(watermarks=marks, token=await _state(runtime, token) if token is not None else None)


async def _state(runtime: Runtime, token: str) -> TokenState:
    parts = read_token(token, "/token")
    try:
        await runtime.wait_settled(parts, 0.0)
    except NotFresh:
        return TokenState(satisfied=False, parts=len(parts), detail="not reached yet")
    except EventDead:
        return TokenState(satisfied=False, parts=len(parts), outcome="dead_letter", detail="ended as a dead letter")
    return TokenState(satisfied=True, parts=len(parts))


HANDLERS: list[HTTPRouteHandler] = [freshness]
