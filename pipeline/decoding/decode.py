"""Decode: bytes as they arrived to change events. The envelopes are told apart by their content."""

from collections.abc import Mapping as Dictionary
from typing import Any

from pipeline.decoding.cloudevents import decode_binary, decode_structured, is_binary, is_structured
from pipeline.decoding.debezium import decode_debezium, is_debezium, is_flattened, unwrap
from pipeline.decoding.native import decode_native, is_native
from pipeline.decoding.strict_json import parse_json
from pipeline.errors import InvalidEvent, TooLarge
from pipeline.mapping import Mappings
from schemas.change_event import ChangeEvent, RawEvent

MAX_BYTES = 16 * 1024 * 1024


def decode(
    raw: RawEvent, mappings: Mappings, *, epochs: Dictionary[str, int] | None = None, max_bytes: int = MAX_BYTES
) -> list[ChangeEvent]:
    """Decode one message to change events, in the order in which they must be applied.

    Mostly one; two for a changed primary key (delete of the old key, upsert of the new); none for what
    carries no change: a null value with a Kafka key (the tombstone after a Debezium delete; a delete is
    only what says so), transaction markers, heartbeats, schema changes. `epochs` gives the epoch of
    each source, 0 when it is not named. Raises InvalidEvent (TooLarge beyond `max_bytes`) and nothing
    else; its `document` and `position` are as far as they could be read.
    """
    known = dict(epochs or {})
    if raw.value is not None and len(raw.value) > max_bytes:
        raise TooLarge("too_large", f"{len(raw.value)} bytes are more than the {max_bytes} of one event")
    if is_binary(raw.headers):
        _refuse_binary_formats(raw)
        return decode_binary(raw, mappings, known)
    if not raw.value:
        return _nothing(raw)
    _refuse_binary_formats(raw)
    body = parse_json(raw.value)
    if body is None:
        raise _null()
    if not isinstance(body, dict):
        raise InvalidEvent("unknown_envelope", "an event is a JSON object; send the items of a list one by one")
    return _decode_object(body, raw, mappings, known)


def _decode_object(
    body: dict[str, Any], raw: RawEvent, mappings: Mappings, epochs: dict[str, int]
) -> list[ChangeEvent]:
    if is_structured(body):
        return decode_structured(body, raw, mappings, epochs)
    payload = unwrap(body)
    if payload is None:
        return []
    if is_debezium(payload):
        return decode_debezium(body, raw, mappings, epochs)
    if is_native(body):
        return decode_native(body, raw, mappings, epochs)
    raise _unknown(body, payload)


def _nothing(raw: RawEvent) -> list[ChangeEvent]:
    if raw.value is None and raw.key is not None:
        return []
    raise _null()


def _null() -> InvalidEvent:
    return InvalidEvent(
        "null_event", 'the event is null or empty; a delete is {"op": "delete"} with source, collection, key'
    )


def _refuse_binary_formats(raw: RawEvent) -> None:
    """Recognize Confluent's wire format: magic byte 0, a schema id of four bytes, then Avro or Protobuf."""
    content_type = raw.headers.get("content-type", "")
    if content_type.startswith(("application/cloudevents+avro", "application/cloudevents+protobuf")):
        raise InvalidEvent("avro_or_protobuf", f"{content_type} is not read; send application/cloudevents+json")
    value = raw.value or b""
    if len(value) >= 5 and value[0] == 0:
        schema = int.from_bytes(value[1:5], "big")
        raise InvalidEvent(
            "avro_or_protobuf",
            f"Avro or Protobuf with schema id {schema}: set the connector's value.converter to "
            "org.apache.kafka.connect.json.JsonConverter, and its key.converter too",
        )


def _unknown(body: dict[str, Any], payload: Any) -> InvalidEvent:
    if is_flattened(payload):
        return InvalidEvent(
            "unknown_envelope",
            "this is a Debezium row without its envelope: take the transform ExtractNewRecordState off the connector, "
            "because operation and position are lost with it",
        )
    found = ", ".join(sorted(body)[:10]) or "nothing"
    return InvalidEvent(
        "unknown_envelope",
        "neither ours (source, collection, key, op, record), nor Debezium (op, source, before, after), nor CloudEvents "
        f"(specversion, source, type, data); it has {found[:200]}",
    )
