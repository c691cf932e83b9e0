"""Waiting for a freshness token before reading."""

import time

import msgspec

from api.http.durations import seconds_of
from api.options import ApiOptions
from api.retrieval.access import Asker
from pipeline.errors import EventDead, InvalidQuery
from pipeline.ports.runtime import Runtime
from schemas.freshness import InvalidToken, decode_token
from schemas.outcome import TokenPart
from schemas.query import FreshnessInfo, SourcePosition


class Waited(msgspec.Struct, frozen=True):
    """What the request waited for."""

    exact: bool
    """True when a position was asked for: nothing older may be read."""
    ms: float


def read_token(text: str, pointer: str) -> list[TokenPart]:
    """Decode a token. Raises InvalidQuery when it is none of ours."""
    try:
        return decode_token(text)
    except InvalidToken as error:
        raise InvalidQuery(str(error), pointer=pointer) from error


async def wait_for(
    runtime: Runtime, asker: Asker, min_freshness: str | SourcePosition | None, wait: str, options: ApiOptions
) -> Waited:
    """Return when the indexes have reached the token, or the source's position. Raises NotFresh or EventDead."""
    limit = seconds_of(wait, "/wait", options.max_wait_s)
    if min_freshness is None:
        return Waited(False, 0.0)
    started = time.perf_counter()
    try:
        if isinstance(min_freshness, SourcePosition):
            await runtime.wait_source(min_freshness.source, min_freshness.position, limit)
        else:
            await runtime.wait_settled(read_token(min_freshness, "/min_freshness"), limit)
    except EventDead as error:
        if asker.sees_all:
            raise
        # The reason quotes the record, which this asker may never have been allowed to read.
        raise EventDead("an event behind the token ended as a dead letter; an operator can see why") from error
    return Waited(True, round((time.perf_counter() - started) * 1000, 2))


async def freshness_info(runtime: Runtime, waited_ms: float) -> FreshnessInfo:
    """Return how far each store is."""
    marks = await runtime.watermarks()
    return FreshnessInfo(
        records=marks.records,
        chunks=marks.chunks,
        text=marks.text,
        graph=marks.graph,
        pending=marks.pending,
        waited_ms=waited_ms,
    )
