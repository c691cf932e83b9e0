"""`/v1/status`, `/v1/digest` and the probes."""

from typing import Any

from litestar import Response, get
from litestar.handlers import HTTPRouteHandler

from api.http.asker import operator_only
from api.http.given import Given
from api.http.problems import RETRY_UNAVAILABLE_S, problem, respond
from api.retrieval.access import Asker
from pipeline.ports.runtime import Runtime


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


@get("/health/live", tags=["operations"], summary="The process answers")
async def live() -> dict[str, str]:
    """Answer."""
    return {"status": "ok"}


@get("/health/ready", tags=["operations"], summary="The stores answer")
async def ready(runtime: Given[Runtime]) -> Response[dict[str, Any]]:
    """Name each store's state; 503 says which one is down and since when. Paused indexing is shown, and no error."""
    health = await runtime.health()
    stores = {store.name: {"status": "up" if store.up else "down", "since": store.since} for store in health.stores}
    if health.down:
        down = ", ".join(f"{store.name} (since {store.since})" for store in health.down)
        what = problem(503, "backend-unavailable", f"does not answer: {down}", extra={"stores": stores})
        return respond(what, {"Retry-After": str(RETRY_UNAVAILABLE_S)})
    paused = len(health.paused)
    return Response({"status": "paused" if paused else "ok", "stores": stores, "paused": paused})


HANDLERS: list[HTTPRouteHandler] = [status, digest, live, ready]
