"""Dates and times as Japanese records write them: ISO 8601, 2025年7月8日, 令和7年7月8日, R7.7.8, 午後3時30分.

Naive times are Asia/Tokyo. That is a fixed +09:00 here: Japan has kept no summer time since 1951.
Eras follow the Cabinet Office's table of era names; a date past the end of its era (平成35年) is
read by counting on, because forms written ahead of a change hold such dates.
"""

import re
import unicodedata
from datetime import UTC, date, datetime, timedelta, timezone

TOKYO = timezone(timedelta(hours=9), "Asia/Tokyo")
YEAR_ONE = datetime(1, 1, 1, tzinfo=UTC)
UNKNOWN_TIME = "1970-01-01T00:00:00.000000Z"
"""Stands for the time of an event that carries a position and no time."""

ERAS: dict[str, date] = {
    "明治": date(1868, 10, 23),
    "大正": date(1912, 7, 30),
    "昭和": date(1926, 12, 25),
    "平成": date(1989, 1, 8),
    "令和": date(2019, 5, 1),
}
_LETTERS = {"M": "明治", "T": "大正", "S": "昭和", "H": "平成", "R": "令和"}
_GREGORIAN_SINCE = date(1873, 1, 1)
"""Meiji 6: dates before it were counted by the moon."""

_N = r"[0-9〇一二三四五六七八九十]"
_DATE = re.compile(
    rf"(?:(?P<era>明治|大正|昭和|平成|令和|[MTSHRmtshr])\s*(?P<era_year>元|{_N}{{1,3}})|(?P<year>{_N}{{4}}))"
    rf"(?:年|(?P<sep>[-./])(?={_N}))\s*"
    rf"(?:(?P<month>{_N}{{1,2}})(?:月|(?P<sep2>[-./])(?={_N})|(?![0-9-./]))\s*"
    rf"(?:(?P<day>{_N}{{1,3}})(?:日|(?![0-9-./月時]))\s*)?)?"
    r"(?:\((?:月|火|水|木|金|土|日)(?:曜日?)?\))?"
)
_COMPACT = re.compile(r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})(?!\d)")
_TIME = re.compile(
    r"(?P<half>午前|午後|AM|PM)?\s*(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"|時(?:(?P<jp_minute>\d{1,2})分(?:(?P<jp_second>\d{1,2})秒)?|(?P<jp_half>半))?)"
    r"\s*(?P<zone>Z|UTC|JST|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)


def parse_date(text: str) -> date | None:
    """Read a date, or None. A year or a month alone is its first day (昭和元年: the era's first day)."""
    plain = _plain(text)
    found = _match_date(plain)
    return found[0] if found and found[1] == len(plain) else None


def parse_time(text: str) -> datetime | None:
    """Read a point in time as UTC, or None; a date alone is its first moment in Asia/Tokyo."""
    plain = _plain(text)
    found = _match_date(plain)
    if found is None:
        return None
    day, end = found
    rest = plain[end:]
    if not rest:
        return _utc(datetime(day.year, day.month, day.day, tzinfo=TOKYO))
    match = _TIME.fullmatch(rest[1:].strip() if rest[0] in "Tt" else rest.strip())
    return _at(day, match) if match else None


def utc_text(moment: datetime) -> str:
    """Write an aware time as `2025-07-08T00:00:00.000000Z` (the year always has four digits)."""
    plain = moment.astimezone(UTC).replace(tzinfo=None)
    return plain.isoformat(timespec="microseconds").rjust(26, "0") + "Z"


def tokyo_text(moment: datetime) -> str:
    """Write an aware time as people in Japan read it: `2025-07-08 09:00:00`."""
    return moment.astimezone(TOKYO).strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")


def microseconds(moment: datetime) -> int:
    """Count microseconds since 0001-01-01 UTC: never negative, so that dates before 1970 order too."""
    return (moment.astimezone(UTC) - YEAR_ONE) // timedelta(microseconds=1)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("−", "-").strip()


def _match_date(plain: str) -> tuple[date, int] | None:
    match = _COMPACT.match(plain) or _DATE.match(plain)
    if match is None:
        return None
    parts = match.groupdict()
    year, start = _year(parts)
    month, day = _number(parts["month"]), _number(parts["day"])
    try:
        if month is None:
            first = date(year, 1, 1)
            result = max(first, start) if start and start.year == year else first
        else:
            result = date(year, month, 1 if day is None else day)
    except (ValueError, OverflowError):
        return None
    too_early = start is not None and result < _GREGORIAN_SINCE
    return None if too_early else (result, match.end())


def _year(parts: dict[str, str | None]) -> tuple[int, date | None]:
    if (western := parts["year"]) is not None:
        return _number(western) or 0, None
    era = parts["era"] or ""
    start = ERAS[_LETTERS.get(era.upper(), era)]
    count = 1 if parts["era_year"] == "元" else (_number(parts["era_year"]) or 0)
    return (start.year + count - 1 if count else 0), start


def _number(text: str | None) -> int | None:
    """Read 12, 十二, 二〇二五; None for nothing, 0 for what is no number."""
    if text is None:
        return None
    digits = "".join(str("〇一二三四五六七八九".index(c)) if c in "〇一二三四五六七八九" else c for c in text)
    if "十" not in digits:
        return int(digits)
    tens, _, ones = digits.partition("十")
    if not (tens + ones + "0").isdigit() or len(tens) > 1 or len(ones) > 1:
        return 0
    return int(tens or "1") * 10 + int(ones or "0")


def _at(day: date, match: re.Match[str]) -> datetime | None:
    part = match.groupdict()
    hour = int(part["hour"])
    if part["half"] in ("午後", "PM", "pm") and hour < 12:
        hour += 12
    elif part["half"] in ("AM", "am") and hour == 12:
        hour = 0
    minute = 30 if part["jp_half"] else int(part["minute"] or part["jp_minute"] or 0)
    second = int(part["second"] or part["jp_second"] or 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        return None
    micro = int((part["fraction"] or "0").ljust(6, "0")[:6])
    since = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)
    try:
        return _utc(datetime(day.year, day.month, day.day, tzinfo=_zone(part["zone"])) + since)
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if text is None or text.upper() == "JST":
        return TOKYO
    if text.upper() in ("Z", "UTC"):
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _utc(moment: datetime) -> datetime | None:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None
