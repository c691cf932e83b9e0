"""Our own envelope: schemas.change_event.NativeEvent."""

from typing import Any

from pipeline.decoding.build import Told, located, mapped_key
from pipeline.decoding.names import check_key, check_name
from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from schemas.change_event import ChangeEvent, RawEvent


def is_native(body: dict[str, Any]) -> bool:
    """Say whether this is our envelope: source and collection, both at the top."""
    return "collection" in body and isinstance(body.get("source"), str)


def decode_native(body: dict[str, Any], raw: RawEvent, mappings: Mappings, epochs: dict[str, int]) -> list[ChangeEvent]:
    """Decode one native event. The key is the envelope's, else the mapping's key columns of the record."""
    source = check_name(_text(body, "source"), "source", "/source")
    mapping = mappings.of(source, check_name(_text(body, "collection"), "collection", "/collection"))
    told = Told(
        mapping=mapping,
        envelope="native",
        lane=raw.lane,
        epoch=epochs.get(source, 0),
        position=_position(body),
        occurred_at=_text(body, "occurred_at") if body.get("occurred_at") is not None else None,
    )
    record = _record(body)
    key = check_key(_text(body, "key"), "/key") if body.get("key") is not None else None
    if (key := key or mapped_key(mapping, record, "/record")) is None:
        raise InvalidEvent(
            "missing_key", "the event has no 'key', and the mapping names no key column of it", pointer="/key"
        )
    with located(mapping, key):
        return [_event(told, key, body, record)]


def _event(told: Told, key: str, body: dict[str, Any], record: dict[str, Any]) -> ChangeEvent:
    op = body.get("op", "upsert")
    if op == "delete":
        return told.event("delete", key, {}, ordered_by=record)
    if op != "upsert":
        raise InvalidEvent("unknown_op", f"op {str(op)[:40]!r} is neither 'upsert' nor 'delete'", pointer="/op")
    if body.get("record") is None:
        raise InvalidEvent("wrong_type", "an upsert needs 'record', an object", pointer="/record")
    return told.event("upsert", key, record)


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise InvalidEvent("wrong_type", f"'{name}' must be a text, not {_kind(value)}", pointer=f"/{name}")
    return value


def _record(body: dict[str, Any]) -> dict[str, Any]:
    record = body.get("record")
    if record is None:
        return {}
    if not isinstance(record, dict):
        raise InvalidEvent("wrong_type", f"'record' must be an object, not {_kind(record)}", pointer="/record")
    return record


def _position(body: dict[str, Any]) -> int | str | None:
    position = body.get("position")
    if position is None or (isinstance(position, int | str) and not isinstance(position, bool)):
        return position
    raise InvalidEvent(
        "wrong_type", f"'position' must be an integer or a text, not {_kind(position)}", pointer="/position"
    )


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
