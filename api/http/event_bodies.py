"""Bodies of `POST /v1/events`: one event, an array, NDJSON, CloudEvents in all three HTTP modes."""

import re

import msgspec
from litestar.exceptions import HTTPException

from pipeline.errors import InvalidQuery, TooLarge
from schemas.change_event import Lane, RawEvent

_NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_CLOUDEVENT, _CLOUDEVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
_ARRAY = re.compile(rb"\s*\[")


class EventBody(msgspec.Struct, frozen=True):
    """Events as they arrived; `batch` is False when the body was one event alone."""

    events: list[RawEvent]
    batch: bool


def split_body(body: bytes, headers: dict[str, str], lane: Lane, most: int) -> EventBody:
    """Cut a body into events without reading them: a bad one must not take the others with it."""
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if "ce-specversion" in headers or "ce-id" in headers:
        return EventBody([RawEvent(value=body or None, headers=_binary(headers), lane=lane)], False)
    if not body.strip():
        raise InvalidQuery("The body is empty; send an event, an array of events, or NDJSON.")
    if media in _NDJSON:
        parts, batch, kind = [line for line in body.splitlines() if line.strip()], True, "application/json"
    elif media == "application/json" or media.endswith("+json"):
        parts, batch = _array(body) if _ARRAY.match(body) else ([body], False)
        kind = _CLOUDEVENT if media in (_CLOUDEVENT, _CLOUDEVENTS) else "application/json"
    else:
        raise HTTPException(status_code=415, detail=f"Send application/json or application/x-ndjson, not {media}.")
    if len(parts) > most:
        raise TooLarge("too_many_events", f"{len(parts)} events in one request; send at most {most}")
    return EventBody([RawEvent(value=part, headers={"content-type": kind}, lane=lane) for part in parts], batch)


def _array(body: bytes) -> tuple[list[bytes], bool]:
    """Return the items of an array; a broken array stays one piece and is refused as such."""
    try:
        return [bytes(item) for item in msgspec.json.decode(body, type=list[msgspec.Raw])], True
    except (msgspec.DecodeError, RecursionError):
        return [body], False


def _binary(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a CloudEvent in binary mode, under the names that Kafka gives them."""
    kept = {name: value for name, value in headers.items() if name.startswith("ce-")}
    named = {"ce_" + name.removeprefix("ce-"): value for name, value in kept.items()}
    return {"content-type": headers.get("content-type", "application/json"), **named}
