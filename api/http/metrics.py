"""Prometheus metrics of the API and the pipeline behind it."""

from typing import Any

from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from api.http.given import Given
from api.http.pipeline_metrics import Seen, see, text_of
from api.http.state_metrics import StateMetrics
from pipeline.ports.runtime import Runtime

_CHARSET = "; charset=utf-8"
"""Litestar adds it."""
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One registry per application, so that two in one process do not mix."""

    def __init__(self) -> None:
        """Declare all metrics."""
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "shinsen_http_requests_total", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "shinsen_http_request_seconds", "Time to answer", ["route"], buckets=_BUCKETS, registry=self.registry
        )
        self._events = Counter("shinsen_events_total", "Events at the door", ["status"], registry=self.registry)
        self._answers = Counter(
            "shinsen_answers_total", "Questions answered", ["strategy", "answerable"], registry=self.registry
        )
        self._up = Gauge("shinsen_store_up", "1 while the store answers", ["store"], registry=self.registry)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def events(self, accepted: int, rejected: int) -> None:
        """Count events at the door."""
        self._events.labels("accepted").inc(accepted)
        self._events.labels("rejected").inc(rejected)

    def answered(self, strategy: str, answerable: bool) -> None:
        """Count one answer."""
        self._answers.labels(strategy, str(answerable).lower()).inc()

    def render(self, seen: Seen) -> bytes:
        """Return the text format with the pipeline's state of this moment."""
        for store in seen.health.stores:
            self._up.labels(store.name).set(int(store.up))
        return generate_latest(self.registry) + text_of(seen)


@get("/metrics", summary="Prometheus metrics", tags=["operations"], include_in_schema=True)
async def metrics_page(
    request: Request[Any, Any, Any],
    runtime: Given[Runtime],
    metrics: Given[Metrics],
    state_metrics: Given[StateMetrics],
) -> Response[bytes]:
    """Render the registry. While a store is down, what must be read from it is absent, and the rest is there."""
    text = metrics.render(await see(runtime)) + await state_metrics.text()
    return Response(text, media_type=CONTENT_TYPE_LATEST.removesuffix(_CHARSET))


HANDLERS: list[HTTPRouteHandler] = [metrics_page]
