"""Durations in requests: `500ms`, `5s`, `1m`, or seconds as a number."""

import re

from pipeline.errors import InvalidQuery

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}


def seconds_of(text: str, pointer: str, longest: float) -> float:
    """Return the seconds. Raises InvalidQuery for anything else and for more than `longest`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidQuery(f"{text[:40]!r} is no duration; write 500ms, 5s or 1m", pointer=pointer)
    seconds = float(match[1]) * _SECONDS[match[2] or "s"]
    if seconds > longest:
        raise InvalidQuery(f"the longest wait is {longest:g}s", pointer=pointer)
    return seconds
