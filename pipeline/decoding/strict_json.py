"""Strict JSON: what every store behind us can keep, without losing digits."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from pipeline.errors import InvalidEvent

MAX_DEPTH = 200
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG_DIGITS = re.compile(rb"\d{19}")
_INT64 = 2**63


def parse_json(data: bytes) -> Any:
    """Parse one JSON text in UTF-8 (a byte order mark is skipped).

    Numbers that a float or a 64-bit integer cannot hold exactly come back as text, so that decimals
    keep their digits. Raises InvalidEvent: `not_utf8`, `lone_surrogate`, `not_json` (NaN and Infinity
    too), `wrong_type` (deeper than 200).
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidEvent("not_utf8", f"not UTF-8 at byte {error.start}; send JSON in UTF-8") from error
    try:
        value = _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise _refusal(data, error) from error
    except RecursionError as error:
        raise _too_deep() from error
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return _big_to_text(value) if _LONG_DIGITS.search(data) else value


def _float(text: str) -> float | str:
    """Keep a number as float only when its shortest form is the number that was written."""
    number = float(text)
    try:
        return number if Decimal(repr(number)) == Decimal(text) else text
    except InvalidOperation:
        return text


_DECODER = msgspec.json.Decoder(float_hook=_float)


def _refusal(data: bytes, error: msgspec.DecodeError) -> InvalidEvent:
    if _SURROGATE_ESCAPE.search(data) and ("surrogate" in str(error) or "truncated" in str(error)):
        return InvalidEvent(
            "lone_surrogate", f"a \\u escape is half of a surrogate pair, which is no character: {error}"
        )
    return InvalidEvent("not_json", f"not JSON: {error}")


def _too_deep() -> InvalidEvent:
    return InvalidEvent("wrong_type", f"objects and lists are nested deeper than {MAX_DEPTH}")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise _too_deep()


def _children(value: Any) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in children if isinstance(child, dict | list)]


def _big_to_text(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and not -_INT64 <= value < _INT64:
        return str(value)
    if isinstance(value, dict):
        return {name: _big_to_text(item) for name, item in value.items()}
    return [_big_to_text(item) for item in value] if isinstance(value, list) else value
