"""A change event: one create, update or delete of one record in a source system."""

from typing import Any, Literal

import msgspec

Op = Literal["upsert", "delete", "truncate", "mark"]
"""`mark` changes nothing: it says how far its source has come (a heartbeat)."""
Lane = Literal["live", "bulk"]
Envelope = Literal["native", "debezium", "cloudevents"]


def document_key(source: str, collection: str, key: str) -> str:
    """Join the three parts of a document key: `source/collection/key` (only the key may hold "/")."""
    return f"{source}/{collection}/{key}"


def split_document_key(document: str) -> tuple[str, str, str]:
    """Split `source/collection/key`. Raises ValueError when a part is missing."""
    source, collection, key = document.split("/", 2)
    return source, collection, key


def collection_of(document: str) -> str:
    """Return `source/collection` of a document key. Raises ValueError when there is none."""
    return document[: document.index("/", document.index("/") + 1)]


class ChangeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What the three envelopes are decoded to; independent of how the record is mapped."""

    source: str
    collection: str
    key: str
    """The record's key inside its collection; empty for `truncate` and `mark`."""
    op: Op
    position: str
    """`Position.sort_key` of this version."""
    version: str
    """The position as the source wrote it (`4711`, `0/16B3748`, a time): what people see."""
    occurred_at: str
    """Source time, RFC 3339 in UTC with microseconds (`2025-07-08T00:00:00.000000Z`)."""
    columns: dict[str, Any] = msgspec.field(default_factory=dict)
    """Raw columns as JSON values; decimals as strings. Empty for a delete."""
    unavailable: tuple[str, ...] = ()
    """Columns that the source did not send because they are unchanged (TOAST)."""
    positioned: bool = True
    """False when `occurred_at` orders this collection."""
    envelope: Envelope = "native"
    lane: Lane = "live"

    @property
    def document(self) -> str:
        """The document key, `source/collection/key`."""
        return document_key(self.source, self.collection, self.key)


class RawEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes as they arrived, with what the transport said about them."""

    value: bytes | None
    """None is a Kafka tombstone."""
    key: bytes | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Lower-case names: `content-type`, `ce_*`, `__debezium.newkey`, ..."""
    topic: str = ""
    lane: Lane = "live"


class NativeEvent(msgspec.Struct, kw_only=True):
    """Our own envelope, as `POST /v1/events` takes it. The JSON Schema is generated from this type."""

    source: str
    collection: str
    key: str
    op: Literal["upsert", "delete"] = "upsert"
    position: int | str | None = None
    """Orders the versions of one key: an integer, or a text read by the mapping's position rule."""
    occurred_at: str | None = None
    """RFC 3339; required when there is no position. Naive times are Asia/Tokyo."""
    record: dict[str, Any] | None = None
    """Required for `upsert`. Without a mapping: title, body, fields, acl, updated_at."""
