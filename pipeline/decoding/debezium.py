"""Debezium's envelope, bare or as {schema, payload}: ops c, u, d, r, t.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events
Answered with no event: the tombstone after a delete, transaction markers, heartbeats without position,
schema changes, logical decoding messages (op m). A change of the tables that the connector itself writes
(`OWN_TABLES`) is a mark: no document, but it says how far the source has come. A changed primary key is
a delete of the old key and an upsert of the new one, at one position.
"""

from typing import Any

import msgspec

from pipeline.decoding.build import Told
from pipeline.decoding.debezium_position import source_order, source_time
from pipeline.decoding.debezium_schema import Schema, decode_columns, field_schemas, is_unavailable
from pipeline.decoding.names import check_name
from pipeline.decoding.record_key import MessageKey, read_message_key, record_key
from pipeline.errors import InvalidEvent
from pipeline.mapping import Mappings
from pipeline.mapping.values import decimal_text, reads_both_ways, unscaled_decimal
from schemas.change_event import ChangeEvent, RawEvent
from schemas.mapping import Mapping

_FLATTENED = frozenset({"__op", "__deleted", "__table", "__source_ts_ms", "__lsn", "__source_lsn"})
_SAME_SCHEMA = ("public", "dbo")
_IGNORED_OPS = ("m",)
OWN_TABLES = frozenset({"shinsen_heartbeat", "shinsen_signal"})
"""Of every schema: for `heartbeat.action.query` and `signal.data.collection`."""


class _Change(msgspec.Struct, frozen=True):
    """One envelope, opened."""

    payload: dict[str, Any]
    source: dict[str, Any]
    schemas: dict[str, Schema]
    mapping: Mapping
    message: MessageKey
    old_key: MessageKey


def unwrap(body: dict[str, Any]) -> Any:
    """Return the payload of a {schema, payload} message, else the body itself."""
    return body["payload"] if body.keys() == {"schema", "payload"} else body


def is_debezium(payload: Any) -> bool:
    """Say whether this is a data change, or one of the messages that Debezium sends beside them."""
    if not isinstance(payload, dict):
        return False
    return ("op" in payload and isinstance(payload.get("source"), dict)) or _is_beside(payload)


def is_flattened(payload: Any) -> bool:
    """Say whether ExtractNewRecordState has taken the envelope off."""
    return isinstance(payload, dict) and not _FLATTENED.isdisjoint(payload)


def decode_debezium(
    body: dict[str, Any], raw: RawEvent, mappings: Mappings, epochs: dict[str, int]
) -> list[ChangeEvent]:
    """Decode one Debezium message to no, one or two events. Raises InvalidEvent."""
    payload = unwrap(body)
    if _is_beside(payload) or payload["op"] in _IGNORED_OPS:
        return []
    change = _open(body, payload, raw, mappings)
    told = Told(
        mapping=change.mapping,
        envelope="debezium",
        lane=raw.lane,
        epoch=epochs.get(change.mapping.source, 0),
        position=source_order(change.source),
        position_pointer="/source",
        occurred_at=source_time(change.source, payload),
        time_pointer="/source/ts_ms",
        snapshot=payload["op"] == "r" or str(change.source.get("snapshot", "false")).lower() not in ("false", "none"),
    )
    if change.source.get("table") in OWN_TABLES:
        return [told.event("mark", "", {})]
    match payload["op"]:
        case "c" | "u" | "r":
            return _upsert(change, told)
        case "d":
            before = _row(change, "before") or {}
            return [told.event("delete", _key(change, before), {}, ordered_by=before)]
        case "t":
            return [told.event("truncate", "", {})]
    raise InvalidEvent(
        "unknown_op", f"op {str(payload['op'])[:40]!r} is none of Debezium's c, u, d, r, t", pointer="/op"
    )


def _is_beside(payload: dict[str, Any]) -> bool:
    transaction = payload.get("status") in ("BEGIN", "END") and "id" in payload and "source" not in payload
    heartbeat = payload.keys() == {"ts_ms"}
    schema_change = "ddl" in payload and isinstance(payload.get("source"), dict) and "op" not in payload
    return transaction or heartbeat or schema_change


def _open(body: dict[str, Any], payload: dict[str, Any], raw: RawEvent, mappings: Mappings) -> _Change:
    source = payload["source"]
    name = check_name(_text(source, "name"), "source", "/source/name")
    table = _text(source, "collection" if source.get("table") is None and "collection" in source else "table")
    schema = source.get("schema")
    if isinstance(schema, str) and schema and schema not in _SAME_SCHEMA:
        table = f"{schema}.{table}"
    mapping = mappings.of(name, check_name(table, "collection", "/source/table"))
    old = raw.headers.get("__debezium.oldkey")
    return _Change(
        payload,
        source,
        field_schemas(body.get("schema") if payload is not body else None),
        mapping,
        read_message_key(raw.key),
        read_message_key(old.encode("utf-8", "replace") if old else None),
    )


def _upsert(change: _Change, told: Told) -> list[ChangeEvent]:
    after = _row(change, "after")
    if after is None:
        raise InvalidEvent("wrong_type", f"op {change.payload['op']!r} needs 'after', an object", pointer="/after")
    unavailable = tuple(sorted(name for name, value in after.items() if is_unavailable(value)))
    columns = {name: value for name, value in after.items() if name not in unavailable}
    key = _key(change, after)
    upsert = told.event("upsert", key, columns, unavailable)
    before = _row(change, "before") or {}
    # Only names from the message key: its values are those of the new key.
    names = MessageKey(dict.fromkeys(change.message.columns))
    old_keys = {record_key(change.mapping, before, names), record_key(change.mapping, {}, change.old_key)}
    old = sorted(old for old in old_keys if old and old != key)
    return [*(told.event("delete", name, {}, ordered_by=after) for name in old), upsert]


def _key(change: _Change, row: dict[str, Any]) -> str:
    key = record_key(change.mapping, row, change.message)
    if key is None:
        mapping = change.mapping
        has = (
            f"the key columns {', '.join(mapping.key)} of its mapping are empty or not sent"
            if mapping.key
            else "no key"
        )
        raise InvalidEvent(
            "missing_key",
            f"a change of {mapping.source}/{mapping.collection}: {has}, and the message has no key; "
            "add `key: [column]` to the mapping, and for deletes let the source send key columns "
            "(PostgreSQL: REPLICA IDENTITY)",
            pointer="/key",
        )
    return key


def _row(change: _Change, side: str) -> dict[str, Any] | None:
    row = change.payload.get(side)
    if row is None:
        return None
    if not isinstance(row, dict):
        raise InvalidEvent(
            "wrong_type",
            f"'{side}' must be an object of columns (MongoDB's connector sends text: use its ExtractNewDocumentState "
            "with the native envelope)",
            pointer=f"/{side}",
        )
    if change.schemas:
        return decode_columns(row, field_schemas({"fields": list(change.schemas.values())}, side), f"/{side}")
    return _settle_decimals(row, change.mapping)


def _settle_decimals(row: dict[str, Any], mapping: Mapping) -> dict[str, Any]:
    """Decode base64 decimals that look like plain numbers (`1234`): later nobody could tell them apart."""
    settled = dict(row)
    for name, rule in mapping.columns.items():
        raw = row.get(name)
        if rule.type == "decimal" and rule.scale is not None and isinstance(raw, str) and reads_both_ways(raw):
            settled[name] = decimal_text(unscaled_decimal(raw, rule.scale))
    return settled


def _text(source: dict[str, Any], name: str) -> str:
    value = source.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidEvent("wrong_type", f"'source.{name}' must be a text", pointer=f"/source/{name}")
    return value
