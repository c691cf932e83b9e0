"""Japanese dates and times."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text.calendar import ERAS, TOKYO, microseconds, parse_date, parse_time, utc_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("令和7年7月8日", date(2025, 7, 8)),
        ("R7.7.8", date(2025, 7, 8)),
        ("Ｒ７．７．８", date(2025, 7, 8)),
        ("r07/07/08", date(2025, 7, 8)),
        ("㋿7年7月8日", date(2025, 7, 8)),
        ("令和七年七月八日", date(2025, 7, 8)),
        ("二〇二五年十二月三十一日", date(2025, 12, 31)),
        ("昭和元年", date(1926, 12, 25)),
        ("昭和64年1月7日", date(1989, 1, 7)),
        ("平成31年4月30日", date(2019, 4, 30)),
        ("平成35年4月1日", date(2023, 4, 1)),
        ("令和元年5月", date(2019, 5, 1)),
        ("2025年7月8日(火)", date(2025, 7, 8)),
        ("2025/07/08", date(2025, 7, 8)),
        ("2025-7-8", date(2025, 7, 8)),
        ("20250708", date(2025, 7, 8)),
        ("2025年7月", date(2025, 7, 1)),
    ],
)
def test_dates(text: str, expected: date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2025",
        "7月8日",
        "2025-13-01",
        "2025-02-30",
        "令和0年1月1日",
        "明治5年1月1日",
        "R7",
        "2025-07-08x",
        "火曜日",
        "十月",
    ],
)
def test_no_dates(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-07-08T09:00:00", "2025-07-08T00:00:00.000000Z"),
        ("2025-07-08T09:00:00Z", "2025-07-08T09:00:00.000000Z"),
        ("2025-07-08T09:00:00.1234567+09:00", "2025-07-08T00:00:00.123456Z"),
        ("2025-07-08 09:00", "2025-07-08T00:00:00.000000Z"),
        ("令和7年7月8日 午後3時30分", "2025-07-08T06:30:00.000000Z"),
        ("2025年7月8日9時半", "2025-07-08T00:30:00.000000Z"),
        ("2025/7/8 24:00", "2025-07-08T15:00:00.000000Z"),
        ("2025-07-08", "2025-07-07T15:00:00.000000Z"),
    ],
)
def test_times(text: str, expected: str) -> None:
    moment = parse_time(text)
    assert moment is not None
    assert utc_text(moment) == expected


@pytest.mark.parametrize(
    "text", ["2025-07-08T25:00", "2025-07-08T09:60", "0001-01-01T00:00:00", "2025-07-08T09:00+99:00", "09:00", "soon"]
)
def test_no_times(text: str) -> None:
    assert parse_time(text) is None


@given(st.dates(min_value=date(1873, 1, 1)), st.sampled_from(sorted(ERAS)))
def test_every_day_reads_back_in_every_era_that_it_falls_into(day: date, era: str) -> None:
    year = day.year - ERAS[era].year + 1
    if 1 <= year <= 999:
        assert parse_date(f"{era}{'元' if year == 1 else year}年{day.month}月{day.day}日") == day


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)))
def test_times_read_back_and_order(plain: datetime) -> None:
    moment = plain.replace(tzinfo=UTC)
    assert parse_time(utc_text(moment)) == moment
    assert microseconds(moment + timedelta(microseconds=1)) == microseconds(moment) + 1 > 0
    assert parse_time(plain.isoformat()) == plain.replace(tzinfo=TOKYO)


@given(st.text(max_size=20))
def test_any_text(text: str) -> None:
    parse_date(text)
    moment = parse_time(text)
    assert moment is None or moment.utcoffset() == timedelta(0)
