"""Debezium values: decoding by the envelope's schema, and the marker for columns that were not sent.

Types: https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types
(the other connectors use the same names). Times without zone become naive ISO text, which the map step
reads as Asia/Tokyo; decimals become exact text; PostgreSQL's `infinity` becomes null. Dates and times
beyond the years 1 to 9999 stay the number that they are: a mapping that reads them refuses the record.
"""

import base64
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

from pipeline.errors import InvalidEvent
from pipeline.mapping.values import decimal_text, is_endless, unscaled_decimal

MARKER = "__debezium_unavailable_value"
_BYTES = MARKER.encode()
_MARKERS: list[Any] = [
    MARKER,
    base64.b64encode(_BYTES).decode(),
    base64.urlsafe_b64encode(_BYTES).decode(),
    _BYTES.hex(),
    [MARKER],
    list(_BYTES),
    {MARKER: MARKER},
    f'{{"{MARKER}":"{MARKER}"}}',
]

Schema = dict[str, Any]
_EPOCH = datetime(1970, 1, 1)


def is_unavailable(raw: Any) -> bool:
    """Say whether this is Debezium's marker, as text, bytes (base64, hex), array or map."""
    return any(raw == marker and type(raw) is type(marker) for marker in _MARKERS)


def field_schemas(schema: Any, *path: str) -> dict[str, Schema]:
    """Return name → schema of the fields of a struct, `path` leading to it from the top; {} when unknown."""
    for step in path:
        schema = field_schemas(schema).get(step)
    fields = schema.get("fields") if isinstance(schema, dict) else None
    listed = fields if isinstance(fields, list) else []
    return {f["field"]: f for f in listed if isinstance(f, dict) and isinstance(f.get("field"), str)}


def decode_columns(row: dict[str, Any], schemas: dict[str, Schema], pointer: str) -> dict[str, Any]:
    """Decode the columns whose schema is known; the others stay as they are. Raises InvalidEvent `wrong_type`."""
    return {name: _decoded(raw, schemas.get(name), f"{pointer}/{name}") for name, raw in row.items()}


def _decoded(raw: Any, schema: Schema | None, pointer: str) -> Any:
    if raw is None or schema is None or is_unavailable(raw):
        return raw
    name = str(schema.get("name"))
    if name.startswith(_TIMES) and is_endless(raw):
        return None
    reader = _BY_NAME.get(name)
    try:
        if reader:
            return reader(raw, schema)
        items = schema.get("items")
        if isinstance(raw, list) and isinstance(items, dict):
            return [_decoded(item, items, pointer) for item in raw]
    except OverflowError:
        return raw
    except (ValueError, TypeError, KeyError) as error:
        kind = schema.get("name")
        raise InvalidEvent(
            "wrong_type", f"{str(raw)[:60]!r} cannot be read as {kind}: {error}", pointer=pointer
        ) from error
    return raw


def _decimal(raw: Any, schema: Schema) -> Any:
    if not isinstance(raw, str):
        return raw
    return decimal_text(unscaled_decimal(raw, int(schema["parameters"]["scale"])))


def _variable_decimal(raw: Any, schema: Schema) -> str:
    return decimal_text(unscaled_decimal(raw["value"], int(raw["scale"])))


def _date(raw: Any, schema: Schema) -> str:
    return (date(1970, 1, 1) + timedelta(days=_whole(raw))).isoformat()


def _timestamp(per_second: int) -> Callable[[Any, Schema], str]:
    def read(raw: Any, schema: Schema) -> str:
        return (_EPOCH + _since(raw, per_second)).isoformat(timespec="microseconds")

    return read


def _time(per_second: int) -> Callable[[Any, Schema], str]:
    def read(raw: Any, schema: Schema) -> str:
        since = _since(raw, per_second)
        if since == timedelta(days=1):
            return "24:00:00.000000"
        return (_EPOCH + since).time().isoformat(timespec="microseconds")

    return read


def _zoneless(raw: Any, schema: Schema) -> Any:
    """Take off the `Z` of an ISO text: the column has no time zone, whatever the connector writes."""
    return raw.removesuffix("Z") if isinstance(raw, str) else raw


def _since(raw: Any, per_second: int) -> timedelta:
    number = _whole(raw)
    return timedelta(microseconds=number // 1000 if per_second == 10**9 else number * (10**6 // per_second))


def _whole(raw: Any) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    raise ValueError("it is no integer")


_CONNECT, _TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
_TIMES = (_TIME, f"{_CONNECT}Date", f"{_CONNECT}Time")
_BY_NAME: dict[str, Callable[[Any, Schema], Any]] = {
    f"{_CONNECT}Decimal": _decimal,
    "io.debezium.data.VariableScaleDecimal": _variable_decimal,
    f"{_CONNECT}Date": _date,
    f"{_TIME}Date": _date,
    f"{_CONNECT}Timestamp": _timestamp(10**3),
    f"{_TIME}Timestamp": _timestamp(10**3),
    f"{_TIME}MicroTimestamp": _timestamp(10**6),
    f"{_TIME}NanoTimestamp": _timestamp(10**9),
    f"{_CONNECT}Time": _time(10**3),
    f"{_TIME}Time": _time(10**3),
    f"{_TIME}MicroTime": _time(10**6),
    f"{_TIME}NanoTime": _time(10**9),
    f"{_TIME}IsoDate": _zoneless,
    f"{_TIME}IsoTime": _zoneless,
    f"{_TIME}IsoTimestamp": _zoneless,
}
"""Zoned types are texts already, in UTC."""
