"""`/v1/status`, `/v1/digest`, `/v1/replay` and the probes."""

import asyncio
from typing import Any

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from api.http.asker import operator_only
from api.http.given import Given
from api.retrieval.access import Asker
from pipeline.errors import BackendUnavailable
from pipeline.ports.runtime import Runtime

_PROBE_S = 2.0


@get("/v1/status", tags=["operations"], summary="Counts, offsets, generations, queues")
async def status(asker: Given[Asker], runtime: Given[Runtime]) -> dict[str, Any]:
    """Return the runtime's own account; counts are over everything, so only an operator sees them."""
    operator_only(asker)
    return await runtime.status()


@get("/v1/digest", tags=["operations"], summary="One hash per part of the stores")
async def digest(asker: Given[Asker], runtime: Given[Runtime]) -> dict[str, str]:
    """Read every store back; 504 while something is pending."""
    operator_only(asker)
    return await runtime.digest()


@post("/v1/replay", status_code=200, tags=["operations"], summary="Rebuild the indexes from the records")
async def replay(asker: Given[Asker], runtime: Given[Runtime]) -> dict[str, Any]:
    """Build a new generation, switch to it, drop the old one; answers when it is done."""
    operator_only(asker)
    return await runtime.replay()


@get("/health/live", tags=["operations"], summary="The process answers")
async def live() -> dict[str, str]:
    """Answer."""
    return {"status": "ok"}


@get("/health/ready", tags=["operations"], summary="The stores answer")
async def ready(runtime: Given[Runtime]) -> Response[dict[str, str]]:
    """Answer 503 when the stores do not."""
    try:
        async with asyncio.timeout(_PROBE_S), runtime.live():
            await runtime.watermarks()
    except (BackendUnavailable, TimeoutError) as error:
        raise BackendUnavailable("the stores do not answer yet") from error
    return Response({"status": "ok"})


HANDLERS: list[HTTPRouteHandler] = [status, digest, replay, live, ready]
