"""Debezium's envelope."""

import base64
import json
from typing import Any

import pytest

from pipeline.decoding.debezium_schema import MARKER
from schemas.change_event import ChangeEvent
from schemas.mapping import ColumnRule, PositionRule
from tests.pipeline.decoding.envelopes import KEY, debezium, mapped, one, read, refusal


def with_schema(fields: list[dict[str, Any]], after: dict[str, Any], **changes: Any) -> dict[str, Any]:
    schema = {"type": "struct", "fields": [{"field": side, "fields": fields} for side in ("before", "after")]}
    return {"schema": schema, "payload": debezium(after=after, **changes)}


@pytest.mark.parametrize("op", ["c", "u", "r"])
def test_rows_become_upserts(op: str) -> None:
    event = one(debezium(op), key=KEY)
    assert (event.document, event.op, event.version) == ("crm/customers/C-1", "upsert", "0/16B6060")
    assert event.columns == {"id": "C-1", "name": "甲"}
    assert event.occurred_at == "2025-07-08T00:00:00.000000Z"


def test_a_late_snapshot_read_loses_to_the_change_at_its_position() -> None:
    read_, change = one(debezium("r"), key=KEY), one(debezium("u"), key=KEY)
    assert read_.position < change.position
    assert read_.lane == "bulk"


def test_a_delete_and_its_tombstone() -> None:
    event = one(debezium("d", before={"id": "C-1", "name": None}, after=None), mapped(key=("id",)))
    assert (event.op, event.key, event.columns) == ("delete", "C-1", {})


def test_a_delete_without_before_takes_the_message_key() -> None:
    assert one(debezium("d", after=None), key=KEY).key == "C-1"


def test_truncate_has_a_position_and_no_key() -> None:
    event = one(debezium("t", after=None))
    assert (event.op, event.key, event.positioned) == ("truncate", "", True)


@pytest.mark.parametrize(
    "beside",
    [
        {"status": "BEGIN", "id": "571:53195829", "event_count": None, "data_collections": None, "ts_ms": 1},
        {"status": "END", "id": "571:53195832", "event_count": 2, "data_collections": [], "ts_ms": 1},
        {"ts_ms": 1751932800000},
        {"source": {"name": "crm"}, "databaseName": "crm", "ddl": "ALTER TABLE ..", "tableChanges": []},
        {"schema": {"type": "struct"}, "payload": {"ts_ms": 1}},
        {"schema": None, "payload": None},
        debezium("m"),
    ],
)
def test_messages_beside_the_data_carry_no_event(beside: dict[str, Any]) -> None:
    assert read(beside, key=KEY) == []


def test_unknown_op() -> None:
    assert refusal(debezium("x"), key=KEY).code == "unknown_op"


def moved(events: list[ChangeEvent]) -> list[tuple[str, str]]:
    return [(event.op, event.key) for event in events]


def test_a_changed_primary_key_moves_the_document() -> None:
    body = debezium("u", before={"id": "C-0"}, after={"id": "C-1", "name": "甲"})
    expected = [("delete", "C-0"), ("upsert", "C-1")]
    assert moved(read(body, key=KEY)) == expected
    assert moved(read(body, mapped(key=("id",)))) == expected


def test_a_changed_primary_key_by_header() -> None:
    old = json.dumps({"schema": {}, "payload": {"id": "C-0"}})
    events = read(debezium("c"), key=KEY, headers={"__debezium.oldkey": old})
    assert moved(events) == [("delete", "C-0"), ("upsert", "C-1")]
    plain = one(debezium("d", before={"id": "C-0"}, after=None), mapped(key=("id",)))
    assert events[0].position == plain.position  # so the delete that Debezium sends beside it is a duplicate


def test_an_unchanged_key_is_one_event() -> None:
    assert len(read(debezium("u", before={"id": "C-1", "name": "乙"}), key=KEY)) == 1


@pytest.mark.parametrize(
    "marker",
    [MARKER, base64.b64encode(MARKER.encode()).decode(), [MARKER], list(MARKER.encode()), MARKER.encode().hex()],
)
def test_columns_that_were_not_sent(marker: Any) -> None:
    event = one(debezium(after={"id": "C-1", "name": "甲", "notes": marker}), key=KEY)
    assert event.unavailable == ("notes",)
    assert "notes" not in event.columns


FIELDS: list[dict[str, Any]] = [
    {"field": "id", "type": "string"},
    {
        "field": "price",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
    },
    {"field": "number", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "ms", "type": "int64", "name": "io.debezium.time.Timestamp"},
    {"field": "us", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "ns", "type": "int64", "name": "io.debezium.time.NanoTimestamp"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTime"},
    {"field": "zoned", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    {"field": "days", "type": "array", "items": {"type": "int32", "name": "io.debezium.time.Date"}},
]


def test_values_are_decoded_by_the_schema() -> None:
    after = {
        "id": "C-1",
        "price": "DsguAA==",
        "number": {"scale": 3, "value": base64.b64encode((-12345).to_bytes(2, "big", signed=True)).decode()},
        "day": 20236,
        "ms": 1751965200123,
        "us": 1751965200123456,
        "ns": 1751965200123456789,
        "at": 32400000001,
        "zoned": "2025-07-08T00:00:00Z",
        "days": [0, None, -1],
    }
    assert one(with_schema(FIELDS, after), key=KEY).columns == {
        "id": "C-1",
        "price": "2480000",
        "number": "-12.345",
        "day": "2025-05-28",
        "ms": "2025-07-08T09:00:00.123000",
        "us": "2025-07-08T09:00:00.123456",
        "ns": "2025-07-08T09:00:00.123456",
        "at": "09:00:00.000001",
        "zoned": "2025-07-08T00:00:00Z",
        "days": ["1970-01-01", None, "1969-12-31"],
    }


def test_a_value_that_is_not_what_its_schema_says() -> None:
    error = refusal(with_schema(FIELDS, {"id": "C-1", "day": "soon"}), key=KEY)
    assert (error.code, error.pointer) == ("wrong_type", "/after/day")


def test_without_schema_values_stay_raw_for_the_mapping() -> None:
    assert one(debezium(after={"id": "C-1", "day": 20236, "price": "DsguAA=="}), key=KEY).columns["day"] == 20236


def test_base64_that_looks_like_a_number_is_settled_while_the_envelope_is_known() -> None:
    number = base64.b64encode((-2658824).to_bytes(3, "big", signed=True)).decode()
    mappings = mapped(key=("id",), columns={"price": ColumnRule("decimal", scale=0)})
    assert number == "1234"
    assert one(debezium(after={"id": "C-1", "price": number}), mappings).columns["price"] == "-2658824"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"lsn": 5}, {"lsn": 2**33}),
        (
            {"connector": "mysql", "file": "mysql-bin.000009", "pos": 900},
            {"connector": "mysql", "file": "mysql-bin.000010", "pos": 4},
        ),
        (
            {"connector": "sqlserver", "change_lsn": None, "commit_lsn": "00000027:00000ac0:0002"},
            {"connector": "sqlserver", "change_lsn": "00000027:00000ac1:0001", "commit_lsn": "0000:"},
        ),
        ({"connector": "oracle", "scn": "99"}, {"connector": "oracle", "scn": "100"}),
        ({"connector": "oracle", "scn": "100", "ssn": 1}, {"connector": "oracle", "scn": "100", "ssn": 2}),
    ],
)
def test_positions_of_connectors(older: dict[str, Any], newer: dict[str, Any]) -> None:
    first, second = one(debezium(source=older), key=KEY), one(debezium(source=newer), key=KEY)
    assert first.positioned and second.positioned
    assert first.position < second.position


def test_a_connector_without_positions_is_ordered_by_time() -> None:
    event = one(debezium(source={"connector": "cassandra", "ts_us": 1751932800000001}), key=KEY)
    assert not event.positioned
    assert event.version == "2025-07-08T00:00:00.000001Z"


def test_rule_none_orders_by_time_too() -> None:
    assert not one(debezium(), mapped(key=("id",), position=PositionRule("none"))).positioned


def test_a_database_schema_of_its_own_is_part_of_the_collection() -> None:
    assert one(debezium(source={"schema": "sales"}), key=KEY).collection == "sales.customers"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b'{"schema": {}, "payload": {"a": 1, "b": "x|y"}}', "1|x\\|y"),
        (b'"C-9"', "C-9"),
        (b"4711", "4711"),
        ("顧客-1".encode(), "顧客-1"),
    ],
)
def test_keys_from_the_message(key: bytes, expected: str) -> None:
    assert one(debezium(), key=key).key == expected


@pytest.mark.parametrize("key", [None, b"Struct{id=1}", b"\x00\x00\x00\x00\x01ab"])
def test_without_a_key_the_mapping_must_name_one(key: bytes | None) -> None:
    error = refusal(debezium(), key=key)
    assert error.code == "missing_key"
    assert "add `key: [column]` to the mapping" in error.reason


def test_a_flattened_message_says_which_transform_to_take_off() -> None:
    error = refusal({"id": 1, "__op": "u", "__lsn": 5})
    assert error.code == "unknown_envelope"
    assert "ExtractNewRecordState" in error.reason


def sent_after(before: int | None, lsn: int | None, **more: Any) -> dict[str, Any]:
    return {"lsn": lsn, "sequence": json.dumps([before and str(before), lsn and str(lsn)]), **more}


def test_a_change_that_was_committed_after_a_snapshot_read_its_row_wins() -> None:
    """Written at 100, read (the old row) in a window that closed at 200, committed at 300: the change is the newer."""
    incremental = {"lsn": None, "sequence": '["190", "200"]', "snapshot": "incremental"}
    read_ = one(debezium("r", source=incremental), key=KEY)
    change = one(debezium("u", source=sent_after(210, 100)), key=KEY)
    seen = one(debezium("u", source=sent_after(180, 185)), key=KEY)
    assert seen.position < read_.position < change.position
    assert change.version == "0/64"


def test_changes_of_one_late_transaction_stay_in_their_order() -> None:
    ops = [("d", 100), ("c", 101), ("u", 300)]
    positions = [one(debezium(op, source=sent_after(210, lsn)), key=KEY).position for op, lsn in ops]
    assert positions == sorted(positions)
    assert len(set(positions)) == len(positions)


@pytest.mark.parametrize("sequence", ["[null,null]", "no json", "{}", "[1]", 7, '["x","y"]'])
def test_a_sequence_that_says_nothing(sequence: Any) -> None:
    plain = one(debezium(), key=KEY)
    assert one(debezium(source={"sequence": sequence}), key=KEY).position == plain.position


@pytest.mark.parametrize("table", ["shinsen_heartbeat", "shinsen_signal"])
def test_the_connectors_own_tables_are_marks_and_no_documents(table: str) -> None:
    event = one(debezium("u", source={"table": table, "lsn": 7, "schema": "ops"}), key=KEY)
    assert (event.op, event.key, event.version, event.columns) == ("mark", "", "0/7", {})
