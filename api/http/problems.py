"""RFC 9457 problem details for every error, by one table."""

import re
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPStatus
from math import ceil
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from api.http.later import NotYet
from pipeline import errors

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
MEDIA_TYPE = "application/problem+json"
_LOG = structlog.get_logger("shinsen.api")

_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.TooLarge, 413, "too-large"),
    (errors.InvalidEvent, 400, "invalid-event"),
    (errors.InvalidQuery, 400, "invalid-request"),
    (errors.Backpressure, 429, "back-pressure"),
    (errors.BackendUnavailable, 503, "backend-unavailable"),
    (errors.QueryTimeout, 504, "query-timeout"),
    (errors.NotFresh, 504, "not-fresh"),
    (errors.EventDead, 409, "event-dead"),
    (errors.CursorExpired, 410, "cursor-expired"),
    (errors.NotFound, 404, "not-found"),
    (errors.NotPossible, 409, "not-possible"),
    (NotYet, 501, "not-implemented"),
)
RETRY_UNAVAILABLE_S = 5
_MISSING = re.compile(r"Missing required \w+ parameter '([^']+)'")


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The body of an error. Members of `extra` are added beside the standard ones."""

    type: str
    title: str
    status: int
    detail: str
    instance: str = ""
    errors: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}

    def body(self) -> dict[str, Any]:
        """Return the JSON object."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {**plain.pop("extra", {}), **plain}


def problem(
    status: int, code: str, detail: str, *, pointer: str | None = None, extra: Mapping[str, Any] | None = None
) -> Problem:
    """Build a problem of this request."""
    request = REQUEST_ID.get()
    return Problem(
        type=f"urn:shinsen:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=f"urn:shinsen:request:{request}" if request else "",
        errors=[] if pointer is None else [{"pointer": pointer, "detail": detail}],
        extra=dict(extra or {}),
    )


def respond(what: Problem, headers: Mapping[str, str] | None = None) -> Response[dict[str, Any]]:
    """Turn a problem into a response."""
    return Response(what.body(), status_code=what.status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def of_exception(error: Exception) -> tuple[Problem, dict[str, str]]:
    """Return the problem and headers of an exception; unknown ones become a 500 that tells nothing."""
    if isinstance(error, HTTPException):
        return _of_http(error), dict(error.headers or {})
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            return _of_ours(error, status, code), _headers(error)
    return problem(500, "internal", "An unexpected error; the server's log has it under this request id."), {}


def handle(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """Litestar's exception handler for everything."""
    what, headers = of_exception(error)
    if isinstance(error, RequestEntityTooLarge):
        most = request.route_handler.resolve_request_max_body_size()
        what.detail = f"The body is larger than the {most} bytes that one request may have here; send less at a time."
    if what.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure("request failed", error, route=request.scope.get("path_template"))
    return respond(what, headers)


def log_failure(event: str, error: Exception, **context: Any) -> None:
    """Log where an unexpected error came from; no message and no variables, which may hold contents."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error(event, error=type(error).__name__, frames=frames, request_id=REQUEST_ID.get(), **context)


def _of_ours(error: Exception, status: int, code: str) -> Problem:
    """A ShinsenError: its text was written for people."""
    pointer = getattr(error, "pointer", None)
    extra: dict[str, Any] = {}
    if isinstance(error, errors.InvalidEvent):
        extra = {"code": error.code}
    if isinstance(error, errors.EventDead):
        extra = {"outcome": "dead_letter"}
    return problem(status, code, str(error), pointer=pointer, extra=extra)


def _headers(error: Exception) -> dict[str, str]:
    """Say when to come back."""
    if isinstance(error, errors.Backpressure):
        return {"Retry-After": str(max(1, ceil(error.retry_after)))}
    if isinstance(error, errors.BackendUnavailable):
        return {"Retry-After": str(RETRY_UNAVAILABLE_S)}
    return {}


def _of_http(error: HTTPException) -> Problem:
    """Litestar's own: routing, methods, media types, body size, query parameters."""
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-").replace("'", "")
    if not isinstance(error, ValidationException):
        return problem(error.status_code, code, error.detail)
    items = error.extra if isinstance(error.extra, list) else []
    if any(item.get("key") == "data" for item in items):  # Litestar's name for the body
        return problem(400, "invalid-request", "The request has no body; send JSON in UTF-8.", pointer="")
    what = problem(400, "invalid-request", "A parameter of the request is wrong." if items else error.detail)
    for item in items:
        key = str(item.get("key", ""))
        what.errors.append({"pointer": f"/{key}" if key else "", "detail": str(item.get("message", ""))})
    if missing := _MISSING.match(error.detail):
        what.errors.append({"pointer": f"/{missing[1]}", "detail": error.detail})
    return what
