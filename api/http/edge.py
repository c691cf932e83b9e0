"""The outermost layer: request ids, who may call at all, one log line and one count for each request."""

import re
import time
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from api.http.metrics import Metrics
from api.http.problems import MEDIA_TYPE, REQUEST_ID, Problem, problem
from api.options import ApiOptions

_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
_LOG = structlog.get_logger("shinsen.request")


class Edge:
    """Wraps the whole application, unknown paths included."""

    def __init__(self, app: ASGIApp, options: ApiOptions, metrics: Metrics) -> None:
        """Wrap `app`."""
        self._app, self._metrics = app, metrics
        self._hosts = None if not options.loopback and not options.allowed_hosts else _host_names(options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        request = given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        REQUEST_ID.set(request)
        watched = _Watched(send, request)
        started = time.perf_counter()
        try:
            refused = self._refusal(scope["method"], headers)
            if refused is None:
                await self._app(scope, receive, watched)
            else:
                await _send_problem(refused, watched)
        finally:
            self._record(scope, watched.status, time.perf_counter() - started, request)

    def _refusal(self, method: str, headers: dict[str, str]) -> Problem | None:
        """Refuse names that are not ours (DNS rebinding) and writes started by another site's page."""
        if self._hosts is None:
            return None
        if _name_of(headers.get("host", "")) not in self._hosts:
            return problem(
                400, "unknown-host", "The Host header names no host of this server; add it to allowed_hosts."
            )
        origin = headers.get("origin")
        if origin and method in _UNSAFE and _name_of(urlsplit(origin).netloc) not in self._hosts:
            return problem(403, "foreign-origin", "Pages of other sites may not write here.")
        return None

    def _record(self, scope: HTTPScope, status: int, seconds: float, request: str) -> None:
        """Log and count by the route's template: paths and queries can hold what is nobody's business."""
        route = scope.get("path_template") or "unmatched"
        self._metrics.observe(scope["method"], route, status, seconds)
        _LOG.info(
            "request",
            method=scope["method"],
            route=route,
            status=status,
            ms=round(seconds * 1000, 1),
            request_id=request,
        )


class _Watched:
    """Passes messages on, remembers the status and adds headers."""

    def __init__(self, send: Send, request: str) -> None:
        self._send, self._request, self.status = send, request, 499

    async def __call__(self, message: Message) -> None:
        """Send one message."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), *_added(self._request)]
        await self._send(message)


def _added(request: str) -> Sequence[tuple[bytes, bytes]]:
    return [(b"x-request-id", request.encode()), (b"x-content-type-options", b"nosniff")]


def _host_names(options: ApiOptions) -> frozenset[str]:
    """Return the names that the Host header may have."""
    own = _OWN_NAMES if options.loopback else ()
    return frozenset({*own, *(_name_of(host) for host in options.allowed_hosts)})


def _name_of(host: str) -> str:
    """Take the port off: `[::1]:8000` → `::1`, `localhost:8000` → `localhost`."""
    host = host.strip().lower().rstrip(".")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


async def _send_problem(what: Problem, send: Any) -> None:
    """Answer without the application."""
    body = msgspec.json.encode(what.body())
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": what.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
