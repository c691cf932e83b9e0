"""`POST /v1/events`: change events in."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import Example
from litestar.params import FromQuery, QueryParameter

from api.http.described import EventsOperation
from api.http.durations import seconds_of
from api.http.event_bodies import EventBody, split_body
from api.http.given import Given
from api.http.metrics import Metrics
from api.http.problems import Problem, problem, respond
from api.options import ApiOptions
from pipeline.errors import BackendUnavailable
from pipeline.ports.runtime import Runtime, Submission
from schemas.change_event import Lane
from schemas.freshness import encode_token
from schemas.outcome import OutcomeName

_NOT_WAITED: dict[str, OutcomeName] = {}


class EventResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of one event."""

    index: int
    status: str
    key: str = ""
    event: str = ""
    token: str = ""
    outcome: str = ""
    problem: dict[str, Any] | None = None
    dead_letter: str = ""


class EventsResponse(msgspec.Struct, kw_only=True):
    """What became of a request's events."""

    accepted: int
    rejected: int
    results: list[EventResult]
    token: str
    """Covers all accepted events."""
    warnings: list[str] = []


@post(
    "/v1/events",
    status_code=202,
    summary="Post change events",
    tags=["events"],
    operation_class=EventsOperation,
)
async def post_events(
    request: Request[Any, Any, Any],
    runtime: Given[Runtime],
    options: Given[ApiOptions],
    metrics: Given[Metrics],
    wait: FromQuery[Literal["applied"] | None] = None,
    timeout: Annotated[
        str, QueryParameter(description="How long `wait` may take", examples=[Example(value="10s")])
    ] = "10s",
    lane: FromQuery[Lane] = "live",
) -> Response[Any]:
    """Take events; the good ones of a batch are kept when others are bad."""
    limit = seconds_of(timeout, "/timeout", options.max_wait_s)
    raw, headers = await request.body(), dict(request.headers)
    body = await asyncio.to_thread(split_body, raw, headers, lane, options.max_events)
    submissions = await runtime.submit(body.events)
    accepted = [s.event for s in submissions if s.status == "accepted"]
    metrics.events(len(accepted), len(submissions) - len(accepted))
    outcomes, warnings = await _outcomes(runtime, accepted, limit) if wait and accepted else (_NOT_WAITED, [])
    answer = await asyncio.to_thread(_answer, submissions, outcomes, warnings)
    if submissions and not accepted:
        return respond(_all_rejected(body, submissions, answer.results))
    done = bool(wait) and len(outcomes) == len(set(accepted))
    return Response(answer, status_code=200 if done else 202)


async def _outcomes(runtime: Runtime, events: Sequence[str], limit: float) -> tuple[dict[str, OutcomeName], list[str]]:
    """Wait; what was accepted stays accepted, whatever becomes of the waiting."""
    try:
        return await runtime.wait_outcomes(events, limit), []
    except BackendUnavailable as error:
        return {}, [f"the events are accepted, and how they end cannot be told now: {error}"]


def _answer(submissions: Sequence[Submission], outcomes: dict[str, OutcomeName], warnings: list[str]) -> EventsResponse:
    """Build the answer; ten thousand tokens take their time, so this runs off the event loop."""
    accepted = sum(submission.status == "accepted" for submission in submissions)
    return EventsResponse(
        accepted=accepted,
        rejected=len(submissions) - accepted,
        results=[_result(submission, outcomes) for submission in submissions],
        token=encode_token(part for submission in submissions for part in submission.parts),
        warnings=warnings,
    )


def _result(submission: Submission, outcomes: dict[str, OutcomeName]) -> EventResult:
    if submission.status == "accepted":
        return EventResult(
            index=submission.index,
            status="accepted",
            key=submission.document,
            event=submission.event,
            token=encode_token(submission.parts),
            outcome=outcomes.get(submission.event, ""),
        )
    return EventResult(
        index=submission.index,
        status="rejected",
        key=submission.document,
        problem=_problem(submission).body(),
        dead_letter=submission.dead_letter,
    )


def _problem(submission: Submission) -> Problem:
    """Return the problem of one event; pointers are into that event."""
    status, code = (413, "too-large") if submission.too_large else (400, "invalid-event")
    if submission.try_again:
        status, code = 503, "backend-unavailable"
    return problem(
        status,
        code,
        submission.reason,
        pointer=submission.pointer,
        extra={"code": submission.code, "dead_letter": submission.dead_letter},
    )


def _all_rejected(body: EventBody, submissions: list[Submission], results: list[EventResult]) -> Problem:
    """One event: its own problem. A batch: one problem with a pointer into each event."""
    if not body.batch:
        return _problem(submissions[0])
    large = all(submission.too_large for submission in submissions)
    what = problem(
        413 if large else 400,
        "too-large" if large else "invalid-event",
        f"All {len(submissions)} events were rejected; `results` says why for each.",
        extra={"results": msgspec.to_builtins(results)},
    )
    what.errors += [{"pointer": f"/{s.index}{s.pointer}", "detail": s.reason, "code": s.code} for s in submissions]
    return what


HANDLERS: list[HTTPRouteHandler] = [post_events]
