"""Whatever arrives: events or InvalidEvent, nothing else; and positions order as they should."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.decoding import decode
from pipeline.decoding.positions import ordinal_of
from pipeline.errors import InvalidEvent
from schemas.change_event import ChangeEvent, RawEvent
from schemas.mapping import ColumnRule
from schemas.position import parse_sort_key
from tests.pipeline.decoding.envelopes import cloud, debezium, mapped, native

MAPPINGS = mapped(key=("id",), columns={"price": ColumnRule("decimal", scale=2)}, updated_at="at")
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
NAMES = st.sampled_from(["id", "price", "at", "name", "lsn", "ts_ms", "scale", "value", "schema", "payload", "before"])
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
TRANSPORT = st.fixed_dictionaries(
    {},
    optional={
        "key": st.binary(max_size=12),
        "headers": st.dictionaries(
            st.sampled_from(["ce_specversion", "ce_type", "ce_source", "ce_id", "content-type", "__debezium.oldkey"]),
            st.text(max_size=12),
        ),
    },
)


def taken(raw: RawEvent) -> list[ChangeEvent]:
    try:
        return decode(raw, MAPPINGS)
    except InvalidEvent as error:
        assert error.code and error.reason
        return []


@given(st.none() | st.binary(max_size=60), TRANSPORT)
@settings(max_examples=300, deadline=None)
def test_any_bytes(value: bytes | None, transport: dict[str, Any]) -> None:
    taken(RawEvent(value=value, **transport))


@given(st.sampled_from([native, cloud, debezium]), st.data(), TRANSPORT)
@settings(max_examples=400, deadline=None)
def test_any_json_in_any_place_of_an_envelope(envelope: Any, data: st.DataObject, transport: dict[str, Any]) -> None:
    body = envelope()
    for place in data.draw(st.lists(st.sampled_from(sorted(body)), max_size=3)):
        body[place] = data.draw(JSON)
    if isinstance(body.get("source"), dict) and data.draw(st.booleans()):
        body["source"][data.draw(st.sampled_from(["name", "table", "lsn", "ts_ms", "connector", "file"]))] = data.draw(
            JSON
        )
    if data.draw(st.booleans()):
        body = {"schema": data.draw(JSON), "payload": body}
    for event in taken(RawEvent(value=msgspec.json.encode(body), **transport)):
        assert parse_sort_key(event.position).sort_key() == event.position
        assert len(event.position) == 46  # so that byte order is number order
        msgspec.json.encode(event)


@given(st.integers(0, 10**20 - 1), st.integers(0, 10**20 - 1))
def test_positions_order_as_their_numbers(one: int, other: int) -> None:
    keys = [
        decode(RawEvent(value=msgspec.json.encode(native(position=str(p)))), MAPPINGS)[0].position for p in (one, other)
    ]
    if one != other:
        assert (keys[0] < keys[1]) == (one < other)


@given(st.integers(0, 2**64 - 1))
def test_lsns_read_back(lsn: int) -> None:
    assert ordinal_of(f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}", "lsn") == lsn
