"""Values: raw columns (JSON) to typed values, and typed values to text, fields and literals.

Encodings are those of Debezium without a schema: days and epoch numbers, base64 two's complement
decimals, `{scale, value}` (io.debezium.data.VariableScaleDecimal), ISO dates with a `Z` that means
nothing. PostgreSQL's `infinity` is no date: the column is empty. All functions raise ValueError with
a sentence for people when a value cannot be read as its type.
"""

import base64
import re
import unicodedata
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.text.calendar import TOKYO, parse_date, parse_time, tokyo_text, utc_text
from schemas.mapping import ColumnRule, ColumnType, EpochUnit

Value = str | int | Decimal | bool | date | datetime | list[str]
KEYWORD = ColumnRule("keyword")

_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|[+-]?\.\d+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_TRUE = frozenset({"true", "t", "yes", "y", "on", "1", "はい", "有"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0", "いいえ", "無"})
_MAX_DIGITS = 100


# What Debezium 3.6 makes of `infinity` and `-infinity`: days (of a snapshot, of a change), milliseconds,
# microseconds, ISO text. Seen for every time.precision.mode; none of them is a date that PostgreSQL can hold.
_ENDLESS: frozenset[int | str] = frozenset(
    (
        *(-622191234, -2147472692, -625821272, -2147472691),
        *(9223372036825200, 9223372036825200000, -9223372036832400, -9223372036832400000),
        *("infinity", "-infinity", "+294247-01-10T04:00:25.2Z", "-290308-12-21T19:59:27.6Z"),
        *("+292278994-08-16Z", "-5877611-06-21Z", "+292269055-12-02Z", "-5877611-06-22Z"),
    )
)


def is_endless(raw: Any) -> bool:
    """Say whether a raw date or time is PostgreSQL's `infinity` or `-infinity`, as Debezium writes them."""
    return isinstance(raw, int | str) and raw in _ENDLESS


def is_empty(raw: Any) -> bool:
    """Say whether a raw column is null, blank text or an empty list."""
    return raw is None or raw == [] or (isinstance(raw, str) and not raw.strip())


def read_value(raw: Any, rule: ColumnRule) -> Value | None:
    """Read a raw column as its type; None when it is empty."""
    return None if _is_nothing(raw, rule) else _READERS[rule.type](raw, rule)


def shown(raw: Any, rule: ColumnRule) -> str:
    """Return a raw column as text for people: dates and texts as written, the rest decoded; "" when empty."""
    if _is_nothing(raw, rule):
        return ""
    if isinstance(raw, str) and rule.type not in ("decimal", "datetime"):
        return clean_text(raw)
    value = _READERS[rule.type](raw, rule)
    if isinstance(value, datetime):
        return tokyo_text(value)
    return "、".join(value) if isinstance(value, list) else str(plain(value))


def _is_nothing(raw: Any, rule: ColumnRule) -> bool:
    return is_empty(raw) or (rule.type in ("date", "datetime") and is_endless(raw))


def plain(value: Value) -> str | int | bool | list[str]:
    """Return a value as fields keep it: decimals as canonical text, dates ISO, times RFC 3339 UTC."""
    if isinstance(value, datetime):
        return utc_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return decimal_text(value) if isinstance(value, Decimal) else value


def lexical(value: Value) -> tuple[str, str]:
    """Return (lexical form, XSD datatype) of a single value."""
    if isinstance(value, bool):
        return ("true" if value else "false"), "boolean"
    kinds: tuple[tuple[type, str], ...] = (
        (int, "integer"),
        (Decimal, "decimal"),
        (datetime, "dateTime"),
        (date, "date"),
    )
    kind = next((name for t, name in kinds if isinstance(value, t)), "string")
    return str(plain(value)), kind


def clean_text(text: str) -> str:
    """Unify line ends and drop control characters; blank at both ends is dropped too."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def decimal_text(number: Decimal) -> str:
    """Write a decimal exactly, without exponent and closing zeros: `1234.5`, `-3`, `0`."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def unscaled_decimal(text: str, scale: int) -> Decimal:
    """Read base64 of a big-endian two's complement integer, moved `scale` digits (Connect's Decimal)."""
    try:
        number = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    except ValueError as error:
        raise ValueError(f"{_short(text)} is no base64 of an unscaled decimal") from error
    digits = str(abs(number))
    if len(digits) > _MAX_DIGITS or abs(scale) > _MAX_DIGITS:
        raise ValueError(f"more than {_MAX_DIGITS} digits")
    return Decimal((int(number < 0), tuple(map(int, digits)), -scale))


def reads_both_ways(text: str) -> bool:
    """Say whether a text is a plain number and base64 too (`1234`), so that only its envelope can tell."""
    return bool(_NUMBER.fullmatch(text)) and _is_base64(text)


def _is_base64(text: str) -> bool:
    return len(text) % 4 == 0 and bool(_BASE64.fullmatch(text))


def _short(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 60 else text[:59] + "…"


def _keyword(raw: Any, rule: ColumnRule) -> str | list[str]:
    if isinstance(raw, list):
        return [text for item in raw if (text := _scalar_text(item))]
    return _scalar_text(raw)


def _scalar_text(raw: Any) -> str:
    if isinstance(raw, str):
        return clean_text(raw)
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return decimal_text(Decimal(repr(raw)))
    if raw is None:
        return ""
    if _is_variable_scale(raw):
        return decimal_text(_decimal(raw, KEYWORD))
    raise ValueError(f"{_short(raw)} is no text, number or list of them")


def _decimal(raw: Any, rule: ColumnRule) -> Decimal:
    if _is_variable_scale(raw):
        return unscaled_decimal(raw["value"], raw["scale"])
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return _finite(repr(raw))
    if isinstance(raw, str):
        text = unicodedata.normalize("NFKC", raw).strip().removeprefix("¥").removesuffix("円").strip()
        if _NUMBER.fullmatch(text):
            return _finite(text.replace(",", ""))
        if rule.scale is not None and _is_base64(raw.strip()):
            return unscaled_decimal(raw.strip(), rule.scale)
    raise ValueError(f"{_short(raw)} is no decimal number")


def _is_variable_scale(raw: Any) -> bool:
    return isinstance(raw, dict) and isinstance(raw.get("value"), str) and isinstance(raw.get("scale"), int)


def _finite(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{_short(text)} is no decimal number") from error
    if not number.is_finite() or len(number.as_tuple().digits) > _MAX_DIGITS or abs(number.adjusted()) > _MAX_DIGITS:
        raise ValueError(f"{_short(text)} has more than {_MAX_DIGITS} digits")
    return number


def _integer(raw: Any, rule: ColumnRule) -> int:
    number = _decimal(raw, rule)
    if number != number.to_integral_value():
        raise ValueError(f"{_short(raw)} is no integer")
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{_short(raw)} is beyond 64 bits; give the column the type decimal")
    return int(number)


def _boolean(raw: Any, rule: ColumnRule) -> bool:
    word = unicodedata.normalize("NFKC", _scalar_text(raw)).lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError(f"{_short(raw)} is neither true nor false")


def _date(raw: Any, rule: ColumnRule) -> date:
    """Days since 1970-01-01; eight digits are YYYYMMDD; larger numbers are times."""
    if isinstance(raw, str):
        # `2025-07-08Z`: the connector's time.precision.mode=isostring.
        moment = None if (day := parse_date(raw.removesuffix("Z"))) else parse_time(raw)
        if day := day or (moment and moment.astimezone(TOKYO).date()):
            return day
    elif isinstance(raw, int) and not isinstance(raw, bool):
        if 10**7 <= raw < 10**8 and (day := parse_date(str(raw))):
            return day
        try:
            small = abs(raw) < 10**7
            return date(1970, 1, 1) + timedelta(days=raw) if small else _datetime(raw, rule).astimezone(TOKYO).date()
        except OverflowError:
            pass
    raise ValueError(f"{_short(raw)} is no date (2025-07-08, 2025年7月8日, 令和7年7月8日, R7.7.8, days since 1970)")


def _datetime(raw: Any, rule: ColumnRule) -> datetime:
    if isinstance(raw, str):
        if moment := parse_time(raw.removesuffix("Z") if rule.zoneless else raw):
            return moment
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        zone = UTC if rule.epoch == "utc" else TOKYO
        try:
            return (datetime(1970, 1, 1, tzinfo=zone) + _since_epoch(raw, rule.unit)).astimezone(UTC)
        except (OverflowError, ValueError):
            pass
    raise ValueError(f"{_short(raw)} is no time (RFC 3339, 2025年7月8日 9時30分, 令和7年7月8日 9:30, epoch number)")


def _since_epoch(number: int | float, unit: EpochUnit | None) -> timedelta:
    """By the unit; without one, the largest of s, ms, us, ns that stays before the year 10,000."""
    guessed = next((name for limit, name in _SIZES if abs(number) < limit), "ns")
    micros = _MICROSECONDS.get(unit or guessed)
    return timedelta(microseconds=int(number * micros) if micros else int(number // 1000))


# Up to the year 10,000, so that 9999-12-31, which many write for "no end", is read right in every unit.
_SIZES = ((26 * 10**10, "s"), (26 * 10**13, "ms"), (26 * 10**16, "us"))
_MICROSECONDS = {"s": 10**6, "ms": 10**3, "us": 1}
_READERS: dict[ColumnType, Any] = {
    "keyword": _keyword,
    "text": _keyword,
    "integer": _integer,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
    "datetime": _datetime,
}
