"""A message as the stages take it: its id, its bytes, its lane, and the times that go with it."""

import datetime
from typing import Any

import msgspec

from schemas.change_event import Lane, RawEvent
from schemas.topics import ARRIVED, RECONCILED

Times = dict[str, str]
"""Header name to time, of those that a message carries through the stages."""
Headers = list[tuple[str, bytes]]


class Delivered(msgspec.Struct, frozen=True):
    """A message of a topic."""

    id: str
    """`<topic>-<partition>-<offset>`; for `reconcile`, of a retried payload, the id that it first had."""
    raw: RawEvent
    times: Times
    place: str = ""
    """`<topic>-<partition>`."""
    offset: int = 0

    @property
    def key(self) -> str:
        """The message's key as text: the document, on our own topics."""
        return (self.raw.key or b"").decode("utf-8", "replace")


def delivered(message: Any, lane: Lane) -> Delivered:
    """Return a message as it arrived, byte for byte, a tombstone as None; `message` is Faust's."""
    headers = {
        str(name).lower(): bytes(value).decode("utf-8", "replace")
        for name, value in dict(message.headers or {}).items()
        if value is not None
    }
    raw = RawEvent(value=message.value, key=message.key, headers=headers, topic=message.topic, lane=lane)
    times = {name: headers[name] for name in (ARRIVED, RECONCILED) if name in headers}
    times.setdefault(ARRIVED, milliseconds(message.timestamp))
    place = f"{message.topic}-{message.partition}"
    return Delivered(f"{place}-{message.offset}", raw, times, place, message.offset)


def milliseconds(moment: float) -> str:
    """Write a time, given in seconds since 1970, as headers have it: RFC 3339 UTC with milliseconds."""
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def as_headers(times: Times) -> Headers:
    """Return times as headers of a message."""
    return [(name, text.encode()) for name, text in times.items()]
