"""Bodies of `POST /v1/events`: one event, an array, NDJSON, CloudEvents in all three HTTP modes."""

import re
from itertools import islice

import msgspec
from litestar.exceptions import HTTPException

from pipeline.errors import InvalidQuery, TooLarge
from schemas.change_event import Lane, RawEvent

_NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_CLOUDEVENT, _CLOUDEVENTS = "application/cloudevents+json", "application/cloudevents-batch+json"
_ARRAY = re.compile(rb"\s*\[")
_LINE = re.compile(rb"[^\r\n]+")
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{},]', re.DOTALL)
_DEEPER = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_PLAIN_COMMAS = 64
"""Commas per allowed event; with more of them, the items are counted before they are made."""


class EventBody(msgspec.Struct, frozen=True):
    """Events as they arrived; `batch` is False when the body was one event alone."""

    events: list[RawEvent]
    batch: bool


def split_body(body: bytes, headers: dict[str, str], lane: Lane, most: int) -> EventBody:
    """Cut a body into events without reading them: a bad one must not take the others with it."""
    media = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    _check_coding(headers.get("content-encoding", ""))
    if "ce-specversion" in headers or "ce-id" in headers:
        return EventBody([RawEvent(value=body or None, headers=_binary(headers), lane=lane)], False)
    if not body.strip():
        raise InvalidQuery("The body is empty; send an event, an array of events, or NDJSON.")
    if media in _NDJSON:
        parts, batch, kind = _lines(body, most), True, "application/json"
    elif media == "application/json" or media.endswith("+json"):
        parts, batch = _array(body, most) if _ARRAY.match(body) else ([body], False)
        kind = _CLOUDEVENT if media in (_CLOUDEVENT, _CLOUDEVENTS) else "application/json"
    else:
        raise HTTPException(status_code=415, detail=f"Send application/json or application/x-ndjson, not {media}.")
    return EventBody([RawEvent(value=part, headers={"content-type": kind}, lane=lane) for part in parts], batch)


def _check_coding(coding: str) -> None:
    """Refuse compressed bodies by their name; their bytes would only be called no UTF-8."""
    if coding.strip().lower() not in ("", "identity"):
        raise HTTPException(
            status_code=415,
            detail=f"Send the body as it is, without Content-Encoding: {coding[:40]}.",
            headers={"Accept-Encoding": "identity"},
        )


def _lines(body: bytes, most: int) -> list[bytes]:
    """Return the lines that hold something."""
    lines = (line for found in _LINE.finditer(body) if (line := found.group()).strip())
    parts = list(islice(lines, most + 1))
    if len(parts) > most:
        raise _too_many(most)
    return parts


def _array(body: bytes, most: int) -> tuple[list[bytes], bool]:
    """Return the items of an array; a broken array stays one piece and is refused as such."""
    if body.count(b",") >= _PLAIN_COMMAS * most and _items_at_least(body, most + 1):
        raise _too_many(most)  # before millions of items are made in one piece, all else standing still
    try:
        items = msgspec.json.decode(body, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return [body], False
    if len(items) > most:
        raise _too_many(most)
    return [bytes(item) for item in items], True


def _items_at_least(body: bytes, least: int) -> bool:
    """Say whether an array has so many items, reading no further than to the last of them."""
    depth, items = 0, 1
    for found in _MARK.finditer(body):
        mark = found.group()
        if mark in _DEEPER:
            depth += _DEEPER[mark]
        elif mark == b"," and depth == 1:
            items += 1
            if items >= least:
                return True
    return False


def _too_many(most: int) -> TooLarge:
    return TooLarge("too_many_events", f"more than {most} events in one request; send at most {most}")


def _binary(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a CloudEvent in binary mode, under the names that Kafka gives them."""
    kept = {name: value for name, value in headers.items() if name.startswith("ce-")}
    named = {"ce_" + name.removeprefix("ce-"): value for name, value in kept.items()}
    return {"content-type": headers.get("content-type", "application/json"), **named}
