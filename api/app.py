"""The application: handlers, dependencies, one error mapper, and the edge around all of it."""

import ipaddress
from typing import Any

from litestar import Litestar, Request, Router
from litestar.di import Provide

from api.answering.flow import Flow
from api.console import page
from api.http import (
    channels_page,
    dead_letters,
    documents,
    entities,
    events,
    freshness,
    generations,
    later,
    metrics,
    operations,
    questions,
    searching,
    sources,
    sparql,
)
from api.http.asker import asker_of
from api.http.edge import Edge
from api.http.metrics import Metrics
from api.http.problems import handle
from api.http.schema_page import openapi_config
from api.http.state_metrics import StateMetrics
from api.options import ApiOptions
from api.retrieval.access import Asker
from api.retrieval.names import Names
from api.retrieval.suggest import Suggester
from api.routing.words import routing_words
from pipeline.ports.runtime import Runtime
from pipeline.settings import Settings

_READING = (
    questions,
    searching,
    documents,
    entities,
    sparql,
    freshness,
    dead_letters,
    operations,
    generations,
    sources,
    metrics,
    later,
    channels_page,
    page,
)


def create_app(runtime: Runtime, settings: Settings | ApiOptions) -> Litestar:
    """Build the ASGI application over a running runtime; the caller opens and closes the runtime."""
    options = settings if isinstance(settings, ApiOptions) else options_of(settings)
    counted, names, suggester = Metrics(), Names(), Suggester(runtime)
    flow = Flow(runtime, names, routing_words(), options.source_timeout_s, suggester)

    def asker(request: Request[Any, Any, Any]) -> Asker:
        return asker_of(request, options)

    def search_service(request: Request[Any, Any, Any]) -> searching.SearchService:
        return searching.SearchService(asker_of(request, options), runtime, options, suggester)

    app = Litestar(
        route_handlers=[
            Router("/", route_handlers=events.HANDLERS, request_max_body_size=options.max_event_body),
            *(handler for module in _READING for handler in module.HANDLERS),
        ],
        dependencies={
            "runtime": _given(runtime),
            "options": _given(options),
            "metrics": _given(counted),
            "state_metrics": _given(StateMetrics(runtime, options.access_classes_limit)),
            "names": _given(names),
            "suggester": _given(suggester),
            "flow": _given(flow),
            "asker": Provide(asker, sync_to_thread=False),
            "search_service": Provide(search_service, sync_to_thread=False),
        },
        exception_handlers={Exception: handle},
        openapi_config=openapi_config(options.version),
        request_max_body_size=options.max_body,
        logging_config=None,
    )
    app.asgi_handler = Edge(app.asgi_handler, options, counted)
    return app


def options_of(settings: Settings) -> ApiOptions:
    """Return what the API needs of the settings."""
    return ApiOptions(
        loopback=is_loopback(settings.host),
        anonymous_groups=settings.anonymous_groups,
        allowed_hosts=settings.allowed_hosts,
        max_event_body=settings.max_body,
        sparql_timeout_s=settings.sparql_timeout,
        sparql_max_bytes=settings.sparql_max_bytes,
        access_classes_limit=settings.access_classes_limit,
    )


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a server bound to this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _given(value: object) -> Provide:
    return Provide(lambda: value, sync_to_thread=False, use_cache=True)
