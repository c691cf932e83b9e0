"""Our own envelope, and what every envelope has in common."""

import pytest

from pipeline.decoding import decode
from pipeline.errors import TooLarge
from schemas.change_event import RawEvent
from schemas.mapping import PositionRule
from tests.pipeline.decoding.envelopes import NO_MAPPINGS, mapped, native, one, read, refusal


def test_an_upsert_with_position() -> None:
    event = one(native(key="営業/甲 乙", occurred_at="2025-07-08T09:00:00"))
    assert event.document == "crm/customers/営業/甲 乙"
    assert (event.op, event.version, event.positioned) == ("upsert", "5", True)
    assert event.occurred_at == "2025-07-08T00:00:00.000000Z"  # naive times are Asia/Tokyo


def test_without_position_the_time_orders() -> None:
    early = one(native(position=..., occurred_at="1955-07-08T09:00:00+09:00"))
    late = one(native(position=..., occurred_at="2025-07-08T09:00:00.000001+09:00"))
    assert not early.positioned
    assert early.position < late.position


def test_a_delete_wins_over_an_upsert_at_the_same_position() -> None:
    assert one(native()).position < one(native(op="delete", record=...)).position


def test_the_same_content_gives_the_same_position_in_any_member_order() -> None:
    one_way, other_way = one(native(record={"a": 1, "b": 2})), one(native(record={"b": 2, "a": 1}))
    assert one_way.position == other_way.position != one(native(record={"a": 1, "b": 3})).position


@pytest.mark.parametrize(
    ("rule", "position", "ordinal"),
    [("lsn", "0/16B3748", 23803720), ("lsn", 7, 7), ("integer", "12", 12), ("lsn", "1/0", 2**32)],
)
def test_position_rules(rule: str, position: int | str, ordinal: int) -> None:
    mappings = mapped(position=PositionRule(rule))  # type: ignore[arg-type]
    assert int(one(native(position=position), mappings).position.split(".")[1]) == ordinal


def test_a_position_from_a_column() -> None:
    mappings = mapped(position=PositionRule("integer", column="revision"))
    assert one(native(position=..., record={"revision": "42"}), mappings).version == "42"
    assert refusal(native(record={"name": "甲"}), mappings).code == "missing_position"


def test_rule_none_does_not_read_positions() -> None:
    event = one(native(occurred_at="2025-07-08T09:00:00Z"), mapped(position=PositionRule("none")))
    assert not event.positioned


def test_the_key_may_come_from_the_mapping() -> None:
    event = one(native(key=..., record={"a": "x|y", "b": 7}), mapped(key=("a", "b")))
    assert event.key == "x\\|y|7"


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        (native(key=""), "missing_key", "/key"),
        (native(key=...), "missing_key", "/key"),
        (native(key=7), "wrong_type", "/key"),
        (native(key="a\nb"), "wrong_type", "/key"),
        (native(key="x" * 513), "wrong_type", "/key"),
        (native(source="a/b"), "wrong_type", "/source"),
        (native(collection=7), "wrong_type", "/collection"),
        (native(op="insert"), "unknown_op", "/op"),
        (native(op=[]), "unknown_op", "/op"),
        (native(record=...), "wrong_type", "/record"),
        (native(record=[]), "wrong_type", "/record"),
        (native(position=-1), "bad_position", "/position"),
        (native(position=10**20), "bad_position", "/position"),
        (native(position=True), "wrong_type", "/position"),
        (native(position="soon"), "bad_position", "/position"),
        (native(position=...), "missing_position", "/occurred_at"),
        (native(position=..., occurred_at="soon"), "wrong_type", "/occurred_at"),
    ],
)
def test_refusals_have_a_code_and_a_pointer(body: dict[str, object], code: str, pointer: str) -> None:
    error = refusal(body)
    assert (error.code, error.pointer) == (code, pointer)


def test_a_refusal_names_the_document_as_soon_as_it_is_known() -> None:
    assert refusal(native(op="insert")).document == "crm/customers/C-1"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"{", "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b'{"a": Infinity}', "not_json"),
        (b"null", "null_event"),
        (b"", "null_event"),
        (b"[]", "unknown_envelope"),
        (b"{}", "unknown_envelope"),
        (b'"\xff"', "not_utf8"),
        ("{}".encode("utf-16"), "not_utf8"),
        (b'{"a": "\\ud800"}', "lone_surrogate"),
        (b'"\\udc00x"', "lone_surrogate"),
        (b'"\\ud800', "lone_surrogate"),
        (b"[" * 100_000 + b"]" * 100_000, "wrong_type"),
        (b'{"source": "a", "collection": "b", "record": ' + b"[" * 201 + b"]" * 201 + b"}", "wrong_type"),
        (b"\x00\x00\x00\x00\x2aabc", "avro_or_protobuf"),
    ],
)
def test_what_is_no_event_at_all(value: bytes, code: str) -> None:
    assert refusal(value).code == code


def test_avro_is_named_with_its_schema_id() -> None:
    error = refusal(b"\x00\x00\x00\x00\x2aabc")
    assert "schema id 42" in error.reason
    assert "JsonConverter" in error.reason


def test_too_large_is_an_error_of_its_own() -> None:
    with pytest.raises(TooLarge, match="more than the 10"):
        decode(RawEvent(value=b"x" * 11), NO_MAPPINGS, max_bytes=10)


def test_numbers_keep_their_digits() -> None:
    body = (
        b'{"source":"a","collection":"b","key":"k","position":1,'
        b'"record":{"big":123456789012345678901234567890,"exact":0.1,"long":0.12345678901234567890,"huge":1e400}}'
    )
    assert one(body).columns == {
        "big": "123456789012345678901234567890",
        "exact": 0.1,
        "long": "0.12345678901234567890",
        "huge": "1e400",
    }


def test_doubled_members_and_a_byte_order_mark_are_fine() -> None:
    body = b'\xef\xbb\xbf{"source":"a","collection":"b","key":"x","key":"y","position":1,"record":{}}'
    assert one(body).key == "y"


def test_a_null_value_is_a_tombstone_only_with_a_key() -> None:
    assert decode(RawEvent(value=None, key=b"k"), NO_MAPPINGS) == []
    assert read(native()) != []
