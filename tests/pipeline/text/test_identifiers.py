"""Identifiers found whole and only whole; patterns of users checked with file and line."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import InvalidConfiguration
from pipeline.text.identifiers import Identifiers, as_mentions
from pipeline.text.patterns import load_identifiers, read_patterns
from tests.contracts.texts import F_17, NOT_F_17, POISON

PRODUCT = load_identifiers()


def _keys(text: str, identifiers: Identifiers = PRODUCT) -> list[str]:
    return [found.key for found in identifiers.find(text)]


@pytest.mark.parametrize(
    "written",
    [
        "F-17", "ABC-1234-X", "E-4021", "ERR_TIMEOUT_504", "ERR_DISK_FULL", "MR-2291", "R2025-0034", "HD-10423",
        "AR-2025-004", "BRK-FB20-01", "v2.3.1", "V10.0.12", "2.3.1", "1.2.3-rc1", "v2.3", "FB20", "ISO9001", "X100",
        "03-1234-5678", "2025-07-08", "192.168.1.10", "user_id", "A4", "SM-210", "WR-14-2.5",
    ],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "昨日{}を見た。", "({})", "「{}」、", "型式:{}", "the {}.", "{}/", "・{}\n"])
def test_found_whole_wherever_it_stands(written: str, around: str) -> None:
    text = around.format(written)
    (found,) = PRODUCT.find(text)
    assert (found.key, text[found.start : found.end]) == (written.lower(), written)


@pytest.mark.parametrize("written", F_17)
def test_one_identifier_however_written(written: str) -> None:
    text = f"フォークリフト{written}号機"
    (found,) = PRODUCT.find(text)
    assert found.key == "f-17"
    assert text[found.start : found.end] == written


@pytest.mark.parametrize("written", NOT_F_17)
def test_never_inside_another(written: str) -> None:
    assert "f-17" not in _keys(f"昨日{written}を見た。")


@pytest.mark.parametrize(
    "text",
    ["e-mail", "wi-fi", "3.5", "1,200円", "100", "第5条", "50%", "サーバー", "on-line", "a", "-", "---", "_", "10~20"],
)
def test_no_identifiers(text: str) -> None:
    assert _keys(text) == []


def test_several_in_one_text() -> None:
    text = "F-17/F-18とABC-1234-X、ABC-1234-Y(v2.3.1)。対象―F-19―"
    assert _keys(text) == ["f-17", "f-18", "abc-1234-x", "abc-1234-y", "v2.3.1", "f-19"]


def test_mentions_have_exact_spans() -> None:
    text = "㍿Ｆ－１７と\ud800F-18"
    mentions = as_mentions(PRODUCT.find(text), text)
    assert [(m.surface, m.key) for m in mentions] == [("Ｆ－１７", "f-17"), ("F-18", "f-18")]
    assert all(text[m.start : m.end] == m.surface for m in mentions)


def test_a_very_long_run_is_not_searched_but_its_neighbours_are() -> None:
    assert _keys("F-17 " + "a1-" * 500 + " F-18") == ["f-17", "f-18"]
    assert "f-17" in _keys("https://example.jp/" + "x/" * 100 + "F-17")


@given(st.text(st.sampled_from("fF-17０aＡ_./ー‐ あ。\n"), max_size=40))
def test_found_means_bounded_and_in_order(text: str) -> None:
    found = PRODUCT.find(text)
    assert all(a.end <= b.start for a, b in pairwise(found))
    for one in found:
        assert 0 <= one.start < one.end <= len(text)
        assert one.key
        before = text[one.start - 1] if one.start else " "
        assert not (before.isascii() and before.isalnum())


@pytest.mark.parametrize("name", POISON)
def test_nothing_raises_and_nothing_is_slow(name: str) -> None:
    started = time.perf_counter()
    PRODUCT.find(POISON[name])
    assert time.perf_counter() - started < 1.0


USER = """
facts: []
identifiers:
  - {name: ringi, type: Document, pattern: '(?<![A-Za-z0-9-])R\\d{4}-\\d{4}(?![A-Za-z0-9-])'}
  - {name: notice, type: Notice, pattern: '総務第\\d{1,5}号'}
"""


def _user(text: str, tmp_path: Path) -> Identifiers:
    path = tmp_path / "patterns.yaml"
    path.write_text(text, "utf-8")
    return load_identifiers([path])


def test_a_user_adds_patterns(tmp_path: Path) -> None:
    identifiers = _user(USER, tmp_path)
    found = identifiers.find("稟議Ｒ２０２５‐００３４と総務第１２号、F-17")
    assert [(f.key, f.name, f.type) for f in found] == [
        ("r2025-0034", "ringi", "Document"),
        ("総務第12号", "notice", "Notice"),
        ("f-17", "code", ""),
    ]
    assert identifiers.version != PRODUCT.version
    assert identifiers.version == _user(USER, tmp_path).version


def test_a_pattern_that_holds_japanese_is_found_in_a_long_sentence(tmp_path: Path) -> None:
    identifiers = _user(USER, tmp_path)
    assert _keys("あ" * 300 + "総務第12号" + "い" * 300 + "総務第13号", identifiers) == ["総務第12号", "総務第13号"]


def test_a_careless_pattern_still_finds_whole_codes_only(tmp_path: Path) -> None:
    identifiers = _user("identifiers:\n  - {name: f, pattern: 'F-17'}\n", tmp_path)
    assert [f.name for f in identifiers.find("F-17")] == ["f"]
    assert [f.name for f in identifiers.find("F-170 AF-17 F-17-2")] == ["code"] * 3


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("identifiers:\n  - {name: a, pattern: 'A-'}\n  - {name: b, pattern: '('}\n", 3, "pattern `b`"),
        ("identifiers:\n  - {name: a}\n", 2, "needs `pattern`"),
        ("identifiers:\n\n  - {pattern: 'A'}\n", 3, "needs `name`"),
        ("identifiers:\n  - {name: a, pattern: [x]}\n", 2, "needs `pattern`"),
        ("identifiers: 7\n", 1, "must be a list"),
        ("- 1\n", 1, "must be a list"),
        ("identifiers:\n  - {name: a, pattern: '\\d*'}\n", 2, "empty text"),
        ("identifiers:\n  - {name: a, pattern: '(?:[a-z]+)+-'}\n", 2, "too long"),
        ("identifiers:\n  - {name: a, pattern: '(?:a|a)*b'}\n", 2, "too long"),
        ("identifiers:\n  - {name: a, pattern: '(?:\\d+-?)*x'}\n", 2, "too long"),
        ("identifiers:\n  - {name: a, pattern: '(?i)a'}\n", 2, "pattern `a`"),
    ],
)
def test_a_bad_pattern_is_refused_with_file_and_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason) as refused:
        read_patterns("mine.yaml", text)
    assert f"mine.yaml:{line}:" in str(refused.value)


def test_files_that_are_no_patterns(tmp_path: Path) -> None:
    assert read_patterns("mine.yaml", "") == []
    assert read_patterns("mine.yaml", "facts: []\n") == []
    with pytest.raises(InvalidConfiguration, match=r"mine\.yaml: not YAML"):
        read_patterns("mine.yaml", "identifiers: [")
    with pytest.raises(InvalidConfiguration, match=r"missing\.yaml"):
        load_identifiers([tmp_path / "missing.yaml"])
