"""Record keys of Debezium events: from the mapping's key columns, or from the Kafka key."""

from typing import Any

import msgspec

from pipeline.decoding.build import key_part
from pipeline.decoding.debezium_schema import decode_columns, field_schemas, is_unavailable
from pipeline.decoding.names import check_key, join_key
from pipeline.decoding.strict_json import parse_json
from pipeline.errors import InvalidEvent
from pipeline.mapping.values import is_empty
from schemas.mapping import Mapping


class MessageKey(msgspec.Struct, frozen=True):
    """A message key: named columns, or one plain value."""

    columns: dict[str, Any]
    plain: str = ""


NO_KEY = MessageKey({})


def read_message_key(data: bytes | None) -> MessageKey:
    """Read a Kafka key or a `__debezium.oldkey` header: JSON with or without schema, or plain text.

    What cannot be read (Avro, `Struct{id=1}`) is no key.
    """
    if not data or data[0] == 0:
        return NO_KEY
    try:
        value = parse_json(data)
    except InvalidEvent:
        return _plain_text(data)
    schema = value.get("schema") if isinstance(value, dict) and value.keys() == {"schema", "payload"} else None
    value = value["payload"] if schema is not None else value
    if isinstance(value, dict):
        return MessageKey(decode_columns(value, field_schemas(schema), "/key"))
    return MessageKey({}, str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else NO_KEY


def record_key(mapping: Mapping, row: dict[str, Any], message: MessageKey) -> str | None:
    """Return the key of a row's state, None when it cannot be told.

    Key columns are the mapping's, else those of the message key; each value comes from the row, else
    from the message key.
    """
    names = mapping.key or tuple(message.columns)
    if not names:
        return check_key(message.plain, "/key") if message.plain else None
    values = [row[name] if not _unknown(row.get(name)) else message.columns.get(name) for name in names]
    if any(_unknown(value) for value in values):
        return None
    parts = [
        key_part(value, mapping.columns.get(name), f"/key/{name}") for name, value in zip(names, values, strict=True)
    ]
    return check_key(join_key(parts), "/key")


def _unknown(raw: Any) -> bool:
    return is_empty(raw) or is_unavailable(raw)


def _plain_text(data: bytes) -> MessageKey:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return NO_KEY
    return NO_KEY if text.startswith("Struct{") else MessageKey({}, text)
