"""`GET /v1/freshness`: how far each store is, how long changes take, and whether a token is satisfied."""

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromQuery

from api.http.given import Given
from api.http.waiting import read_token
from api.retrieval.access import Asker
from pipeline.errors import EventDead, NotFresh
from pipeline.ports.runtime import Runtime, Watermarks
from pipeline.ports.signals import EVERY_COLLECTION, ChangeTime, StageLag


class TokenState(msgspec.Struct, frozen=True, kw_only=True):
    """Where the events behind a token are."""

    satisfied: bool
    parts: int
    outcome: str = ""
    detail: str = ""


class OperatorSignals(msgspec.Struct, frozen=True, kw_only=True):
    """What only operators see, because it counts over everything."""

    stages: list[StageLag]
    dead_letters: int
    warnings: list[str]


class FreshnessResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Watermarks and times, and the token's state when one was given."""

    watermarks: Watermarks
    change_to_searchable: list[ChangeTime]
    """Over the last minutes; by collection for operators only."""
    oldest_unapplied: str
    """Arrival of the oldest event that is not in every store yet; empty when there is none."""
    operators: OperatorSignals | None = None
    token: TokenState | None = None


@get("/v1/freshness", tags=["operations"], summary="Watermarks, change-to-searchable times, lag, and tokens")
async def freshness(
    asker: Given[Asker], runtime: Given[Runtime], token: FromQuery[str | None] = None
) -> FreshnessResponse:
    """Answer at once; `min_freshness` of a question is what waits."""
    marks, signals = await runtime.watermarks(), await runtime.signals()
    seen = OperatorSignals(stages=signals.stages, dead_letters=signals.dead_letters, warnings=signals.warnings)
    return FreshnessResponse(
        watermarks=marks,
        change_to_searchable=[t for t in signals.times if asker.sees_all or t.collection == EVERY_COLLECTION],
        oldest_unapplied=signals.oldest_unapplied,
        operators=seen if asker.sees_all else None,
        token=await _state(runtime, token) if token is not None else None,
    )


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
