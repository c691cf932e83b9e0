"""Values of any writing in one form, and what is no value."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InvalidConfiguration
from pipeline.text.normalize import fold
from pipeline.text.numerals import number_text, parse_number
from pipeline.text.patterns import load_identifiers
from pipeline.text.terms import TermAnalyzer
from pipeline.text.units import Units, product_units, read_units
from pipeline.text.values import Values
from tests.contracts.texts import POISON

VALUES = Values(product_units())
ANALYZER = TermAnalyzer(load_identifiers())


def found(text: str) -> list[tuple[str, str]]:
    return [(value.key, value.kind) for value in VALUES.find(fold(text)[0])]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,200", "1200"), ("千二百", "1200"), ("二〇二五", "2025"), ("1億2000万", "120000000"), ("3千", "3000"),
        ("十", "10"),
        ("二十五", "25"), ("3.5", "3.5"), ("2.5万", "25000"), ("百", "100"), ("壱万", "10000"), ("〇", "0"),
        ("万", None), ("1,20", None), ("1.2.3", None), ("", None), ("十十", None), ("9" * 40, None),
    ],
)  # fmt: skip
def test_numbers(text: str, number: str | None) -> None:
    read = parse_number(text)
    assert (None if read is None else number_text(read)) == number


@pytest.mark.parametrize(
    "written",
    ["2025年7月8日", "令和7年7月8日", "R7.7.8", "2025/7/8", "２０２５－０７－０８", "二〇二五年七月八日", "2025.7.8",
     "令和七年七月八日(火)", "2025-07-08T09:00", "R7年7月8日"],
)  # fmt: skip
def test_one_date(written: str) -> None:
    (value,) = [v for v in ANALYZER.marks(fold(f"期限は{written}まで")[0]).values if v.kind == "date"]
    assert (value.key, value.wider) == ("2025-07-08", ("2025-07", "2025", "07-08"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("平成元年", [("1989", "date")]),
        ("S58年とH元年とR7年度", [("1983", "date"), ("1989", "date"), ("2025", "date")]),
        ("T3年1回、R2年間、AS58年", [("1回", "amount")]),
        ("100MVAと100,000kVA", [("100000000va", "amount")] * 2),
        ("31.5kAと31,500A", [("31500a", "amount")] * 2),
        ("1.2MWhと1,200kWhと120万Wh", [("1200000wh", "amount")] * 3),
        ("2,000mAhと2Ah", [("2ah", "amount")] * 2),
        ("1013hPaと101.3kPa", [("101.3kpa", "amount")] * 2),
        ("1Gbpsと1000Mbps", [("1000000000bps", "amount")] * 2),
        ("昭和63年12月", [("1988-12", "date")]),
        ("7月8日", [("07-08", "date")]),
        ("2025年2月30日", []),
        ("13月1日", []),
        ("1,200円と¥1200", [("1200円", "amount")] * 2),
        ("2.5トンと2500kg", [("2500000g", "amount")] * 2),
        ("1時間30分と90分", [("5400秒", "amount")] * 2),
        ("午後3時30分", [("15:30", "time")]),
        ("15:30と3時半と3:30 PM", [("15:30", "time"), ("03:30", "time"), ("15:30", "time")]),
        ("3時間、1時期、25:61、1:100、午後13時", [("10800秒", "amount")]),
        ("20250708と2025/07", [("2025-07-08", "date"), ("2025-07", "date")]),
        ("20251340、120250708、2025/13、LOT-20250708", []),
        ("令和7.7.8と令和7/7/8", [("2025-07-08", "date")] * 2),
        ("弐拾万円とJPY 200,000", [("200000円", "amount")] * 2),
        ("25日、25日本、25日経", [("25日", "amount")]),
        ("-5℃", [("-5度", "amount")]),
        ("毎分1500回転", [("1500rpm", "amount")]),
        ("3トンネル", []),
        ("3分の1", []),
        ("第十二条と第12条", [("第12条", "ordinal")] * 2),
        ("(03)3456-7890、+81-3-3456-7890", [("0334567890", "phone")] * 2),
        ("昭和47年労働省令第32号", [("1972", "date"), ("労働省令第32号", "document_number")]),
        ("第1項第3号", [("第1項", "ordinal"), ("第3号", "ordinal")]),
        ("", []),
    ],
)
def test_values(text: str, values: list[tuple[str, str]]) -> None:
    assert found(text) == values


@pytest.mark.parametrize("text", ["十分に注意する", "三菱の千葉工場", "一部を四国へ", "百人一首"])
def test_words_with_numerals_are_words(text: str) -> None:
    analyzer = TermAnalyzer(load_identifiers())
    assert [t.term for t in analyzer.tokens_with_offsets(text) if t.kind == "value"] == []


def test_a_value_in_kanji_is_one() -> None:
    assert "2台" in ANALYZER.analyze("二台を止めた").terms
    assert ANALYZER.analyze("二台を止めた").terms == ANALYZER.analyze("2台を止めた").terms


@given(st.text(st.sampled_from("0123456789,.-/年月日円万億千百十第号令和平成R¥台mkg時間分 (0)+81"), max_size=60))
def test_spans_are_in_order_and_never_overlap(text: str) -> None:
    end = 0
    for value in VALUES.find(fold(text)[0]):
        assert end <= value.start < value.end
        assert value.key
        end = value.end


@pytest.mark.parametrize("name", POISON)
def test_nothing_raises(name: str) -> None:
    VALUES.find(fold(POISON[name])[0])


@pytest.mark.parametrize(
    "piece", ["一", "1", "千", "1,", "第一", "一年", "令和", "-1", "(0", "一万", "¥1", "1.", "七月", "時速"]
)
def test_nothing_is_slow(piece: str) -> None:
    text = piece * (10_000 // len(piece))
    started = time.process_time()
    VALUES.find(text)
    assert time.process_time() - started < 0.5


def test_a_user_adds_units() -> None:
    own = read_units("mine.yaml", "units:\n  - {unit: パレット, spellings: [PL, 枚板]}\n  - {unit: 束, of: {本: 12}}\n")
    values = Values(Units([*own, *product_units().units]))
    assert [v.key for v in values.find(fold("5PLと5パレット、2束と24本")[0])] == [
        "5パレット",
        "5パレット",
        "24本",
        "24本",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("units: 7\n", "must be a list"),
        ("units:\n  - {spellings: [a]}\n", "unit 1: needs `unit`"),
        ("units:\n  - {unit: a}\n  - {unit: b, of: {a: x}}\n", "unit 2: `of` must give a number"),
        ("units:\n  - {unit: a, of: {b: 2}}\n  - {unit: b, of: {a: 2}}\n", "multiple of itself"),
        ("units:\n  - {unit: a, size: 1}\n", "'size' is none of"),
        ("units: [", "not YAML"),
    ],
)
def test_a_bad_unit_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason):
        read_units("mine.yaml", text)
