"""Messages as Debezium 3.6.1 wrote them for one PostgreSQL row of every type, under five ways to configure types.

Recorded from a real connector (captured/postgresql.json): `plain` and `schema` with its defaults, without and with
schemas; `text` and `textschema` with decimals as string and times as ISO text; `connect` with Kafka Connect's own
types and decimals as double; `toast` an update of a row whose large columns did not change.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.decoding import decode
from pipeline.mapping import Mappings
from pipeline.mapping.values import plain, read_value
from schemas.change_event import ChangeEvent, RawEvent
from schemas.mapping import ColumnRule

CAPTURED = json.loads((Path(__file__).parent / "captured" / "postgresql.json").read_text())
EXACT = {
    "name": "甲",
    "price": "1234.5",
    "free": "0.00001234",
    "money": "12.3",
    "day": "2025-07-08",
    "at": "2025-07-08T09:00:00.123456",
    "at3": "2025-07-08T09:00:00.123000",
    "at0": "2025-07-08T09:00:00.000000",
    "atz": "2025-07-08T00:00:00.123456Z",
    "t": "09:00:00.500000",
    "raw": "AP8B",
    "ok": True,
    "one": True,
    "big": 9007199254740993,
    "tags": ["a", "b"],
    "nums": ["1.5", "2"],
    "days": ["2025-07-08"],
    "ats": ["2025-07-08T09:00:00.000000"],
    "doc": '{"a": [1, 2.50]}',
    "docb": '{"b": "あ"}',
    "uid": "00000000-0000-0000-0000-000000000001",
    "k": "車",
    "notes": "長い",
}


def events(way: str) -> list[ChangeEvent]:
    return [
        event
        for message in CAPTURED[way]
        for event in decode(
            RawEvent(
                value=message["value"].encode() if message["value"] else None,
                key=message["key"].encode() if message["key"] else None,
                headers=message["headers"],
            ),
            Mappings(),
        )
    ]


def first(way: str, **expected: Any) -> dict[str, Any]:
    """The first row's columns, as far as they are expected."""
    columns = events(way)[0].columns
    return {name: columns[name] for name in expected}


def test_with_schemas_every_type_is_read_by_itself() -> None:
    assert first("schema", **EXACT) == EXACT


def test_iso_times_and_decimals_as_text_come_out_the_same() -> None:
    texts = {"price": "1234.50", "money": "12.30", "at3": "2025-07-08T09:00:00.123", "at0": "2025-07-08T09:00:00"}
    more = {"t": "09:00:00.5", "nums": ["1.50", "2.00"], "ats": ["2025-07-08T09:00:00"]}
    assert first("textschema", **EXACT) == EXACT | texts | more


def test_connects_own_types() -> None:
    shorter = {"price": 1234.5, "free": 1.234e-05, "money": 12.3, "at": "2025-07-08T09:00:00.123000"}
    expected = EXACT | shorter | {"raw": "00ff01", "nums": [1.5, 2.0]}
    assert first("connect", **expected) == expected


PRICE, DAY = ("1234.5", ColumnRule("decimal", scale=2)), ("2025-07-08", ColumnRule("date"))
AT, ZONED = "2025-07-08T00:00:00.123456Z", ("2025-07-08T00:00:00.123456Z", ColumnRule("datetime"))


@pytest.mark.parametrize(
    ("way", "rules"),
    [
        ("plain", {"price": PRICE, "day": DAY, "at": (AT, ColumnRule("datetime")), "atz": ZONED}),
        ("plain", {"at": (AT, ColumnRule("datetime", unit="us")), "free": ("0.00001234", ColumnRule("decimal"))}),
        ("text", {"price": PRICE, "day": DAY, "at": (AT, ColumnRule("datetime", zoneless=True)), "atz": ZONED}),
        ("schema", {"price": PRICE, "day": DAY, "at": (AT, ColumnRule("datetime", unit="us")), "atz": ZONED}),
        ("textschema", {"price": PRICE, "day": DAY, "at": (AT, ColumnRule("datetime")), "atz": ZONED}),
    ],
)
def test_the_mappings_rules_read_what_no_schema_told(way: str, rules: dict[str, tuple[str, ColumnRule]]) -> None:
    columns = events(way)[0].columns
    read = {name: read_value(columns[name], rule) for name, (_, rule) in rules.items()}
    assert {name: plain(value) for name, value in read.items() if value is not None} == {
        name: expected for name, (expected, _) in rules.items()
    }


@pytest.mark.parametrize("way", ["plain", "schema", "text", "textschema", "connect"])
def test_infinity_is_no_date(way: str) -> None:
    columns = events(way)[1].columns
    rules = {"day": ColumnRule("date")} | dict.fromkeys(("at", "at3", "atz"), ColumnRule("datetime"))
    assert [read_value(columns[name], rule) for name, rule in rules.items()] == [None] * 4


def test_times_before_1970_and_far_ones() -> None:
    columns = events("schema")[2].columns
    assert (columns["day"], columns["at"]) == ("1965-01-01", "1965-01-01T00:00:00.000000")
    assert columns["at3"] == -63517824000000, "44 BC: no date of ours, left to a mapping to refuse"


def test_what_happened_to_the_rows() -> None:
    found = [(event.op, event.key) for event in events("plain")]
    assert found == [
        ("upsert", "1"),
        ("upsert", "2"),
        ("upsert", "3"),
        ("upsert", "1"),
        ("delete", "2"),  # the key changed: its delete, then from the header of the new row again
        ("delete", "2"),
        ("upsert", "9"),
        ("delete", "3"),
        ("upsert", "1"),
        ("truncate", ""),
        ("upsert", "5"),
    ]
    positions = [event.position for event in events("plain")]
    moved = positions.pop(5)
    assert moved == positions[4], "the second delete is a duplicate of the first"
    del positions[4]
    assert positions == sorted(positions)
    assert [e.columns.get("extra") for e in events("plain") if e.key == "1"] == [None, None, "追加"]


def test_columns_that_did_not_change() -> None:
    read, update, late = events("toast")
    assert update.unavailable == ("arr", "doc", "ints", "notes", "raw")
    assert update.columns == {"id": 1, "name": "乙", "h": -2147472691}
    assert read.position < update.position < late.position, "an incremental snapshot has the LSN of its window's end"
    assert late.positioned
    assert late.lane == "bulk"
