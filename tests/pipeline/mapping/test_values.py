"""Values: raw columns to typed ones."""

import base64
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.mapping.values import decimal_text, plain, read_value, shown, unscaled_decimal
from schemas.mapping import ColumnRule, ColumnType


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("integer", 7, 7),
        ("integer", "1,234", 1234),
        ("integer", "１２", 12),
        ("integer", 3.0, 3),
        ("decimal", "248,000円", "248000"),
        ("decimal", 0.1, "0.1"),
        ("decimal", "12345678901234567890.12", "12345678901234567890.12"),
        ("decimal", {"scale": 1, "value": "AA=="}, "0"),
        ("boolean", "はい", True),
        ("boolean", 0, False),
        ("date", 20236, "2025-05-28"),
        ("date", 20250708, "2025-07-08"),
        ("date", "令和7年7月8日", "2025-07-08"),
        ("date", "2025-07-08T23:00:00Z", "2025-07-09"),
        ("datetime", "2025-07-08T09:00:00", "2025-07-08T00:00:00.000000Z"),
        ("datetime", 1751965200, "2025-07-08T00:00:00.000000Z"),
        ("datetime", 1751965200123, "2025-07-08T00:00:00.123000Z"),
        ("datetime", 1751965200123456, "2025-07-08T00:00:00.123456Z"),
        ("datetime", 1751965200123456789, "2025-07-08T00:00:00.123456Z"),
        ("keyword", 12, "12"),
        ("keyword", True, "true"),
        ("keyword", ["a", 1, None], ["a", "1"]),
        ("text", "a\r\nb\x00c", "a\nbc"),
    ],
)
def test_values(kind: ColumnType, raw: Any, expected: Any) -> None:
    value = read_value(raw, ColumnRule(kind))
    assert value is not None
    assert plain(value) == expected


@pytest.mark.parametrize("kind", ["keyword", "integer", "decimal", "boolean", "date", "datetime"])
@pytest.mark.parametrize("raw", [None, "", "  ", []])
def test_empty_columns(kind: ColumnType, raw: Any) -> None:
    assert read_value(raw, ColumnRule(kind)) is None
    assert shown(raw, ColumnRule(kind)) == ""


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("integer", "soon"),
        ("integer", 1.5),
        ("integer", True),
        ("integer", 2**63),
        ("decimal", "1e999"),
        ("decimal", "NaN"),
        ("decimal", "AAAA"),  # base64 is read only where the mapping gives a scale
        ("boolean", "perhaps"),
        ("date", "soon"),
        ("date", 10**30),
        ("date", True),
        ("datetime", "soon"),
        ("datetime", 10**30),
        ("keyword", {"a": 1}),
        ("keyword", [[1]]),
    ],
)
def test_wrong_values(kind: ColumnType, raw: Any) -> None:
    with pytest.raises(ValueError, match=r"is no|64 bits|digits|neither"):
        read_value(raw, ColumnRule(kind))


def test_epoch_numbers_as_points_in_time() -> None:
    value = read_value(1751965200, ColumnRule("datetime", epoch="utc"))
    assert value is not None
    assert plain(value) == "2025-07-08T09:00:00.000000Z"


def test_texts_are_shown_as_written_and_encoded_values_decoded() -> None:
    assert shown("令和7年7月8日", ColumnRule("date")) == "令和7年7月8日"
    assert shown(20236, ColumnRule("date")) == "2025-05-28"
    assert shown("DsguAA==", ColumnRule("decimal", scale=2)) == "2480000"
    assert shown("2025-07-08T00:00:00Z", ColumnRule("datetime")) == "2025-07-08 09:00:00"


@given(st.integers(-(10**38), 10**38), st.integers(0, 20))
def test_unscaled_decimals_read_back(number: int, scale: int) -> None:
    size = number.bit_length() // 8 + 1
    text = base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
    read = unscaled_decimal(text, scale)
    assert read.as_tuple().exponent == -scale
    assert int("".join(map(str, read.as_tuple().digits))) == abs(number)
    assert Decimal(decimal_text(read)) == read


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40, places=10))
def test_decimal_text_is_exact_and_canonical(number: Decimal) -> None:
    text = decimal_text(number)
    assert Decimal(text) == number
    assert "e" not in text.lower()
    assert not (("." in text) and text.endswith("0"))
    assert decimal_text(Decimal(text + ("0" if "." in text else ".00"))) == text


@given(st.integers(-3_000_000, 9_999_999))
def test_days_since_1970(days: int) -> None:
    try:
        value = read_value(days, ColumnRule("date"))
    except ValueError:
        return
    assert isinstance(value, date)
    assert (value - date(1970, 1, 1)).days == days
