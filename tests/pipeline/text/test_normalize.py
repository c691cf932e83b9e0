"""Folding with exact offsets, and keys of names."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.text.normalize import company_core, fold, name_key, source_span, without_surrogates
from tests.contracts.texts import POISON

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
JAPANESE = st.text(
    st.sampled_from("アイサーバヴ゛゜がか\u3099ﾊﾟｶﾞ株(（）)㈱㍿①Ａａ－‐ー〜～髙崎﨑齋 \u3000\u200b\U000e0100ß"),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Ｆ－１７", "f-17"),
        ("Fー17", "f-17"),
        ("フォークリフト", "フォークリフト"),
        ("サーバー1", "サーバー1"),
        ("ｶﾞｽ漏れ", "ガス漏れ"),
        ("か\u3099", "が"),
        ("髙橋", "高橋"),
        ("山﨑", "山崎"),
        ("齋藤", "斎藤"),
        ("渡邊", "渡辺"),
        ("渡邉", "渡辺"),
        ("㈱山田", "株式会社山田"),
        ("（有）山田", "有限会社山田"),
        ("㈳日本", "社団法人日本"),
        ("(社)日本", "(社)日本"),
        ("㍿", "株式会社"),
        ("①", "1"),
        ("Straße", "strasse"),
        ("葛\U000e0100城", "葛城"),
        ("設\u200b備", "設備"),
        ("10〜20", "10~20"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_folding(text: str, folded: str) -> None:
    assert fold(text)[0] == folded


@given(ANY_TEXT | JAPANESE)
@example("ﷺ(株)ﷺ")
def test_offsets_are_one_per_character_and_never_go_back(text: str) -> None:
    folded, offsets = fold(text)
    assert len(offsets) == len(folded) + 1
    assert offsets[-1] == len(text)
    assert all(a <= b for a, b in pairwise(offsets))
    assert all(0 <= offset <= len(text) for offset in offsets)


def test_a_sign_and_its_mark_are_carried_back_together() -> None:
    folded, offsets = fold("a)\u3099b")
    assert folded == "a)\u3099b"
    assert {source_span(offsets, 1, 2), source_span(offsets, 1, 3)} == {(1, 3)}


def with_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span to whole signs: a sign and the mark behind it, with which it cannot be composed, are one ()゙)."""
    while 0 < start < end and unicodedata.combining(text[start]):
        start -= 1
    while start < end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return start, end


@given(JAPANESE, st.data())
def test_a_span_carried_back_folds_to_the_same(text: str, data: st.DataObject) -> None:
    folded, offsets = fold(text)
    start = data.draw(st.integers(0, len(folded)))
    end = data.draw(st.integers(start, len(folded)))
    left, right = source_span(offsets, start, end)
    assert 0 <= left <= right <= len(text)
    assert (left < right) == (start < end)
    if unicodedata.is_normalized("NFKC", text) and not set(text) & set("ー(ß"):
        wider_start, wider_end = with_marks(folded, start, end)
        back = fold(text[left:right])[0]
        assert back in {folded[a:b] for a in (start, wider_start) for b in (end, wider_end)}


@given(ANY_TEXT | JAPANESE)
def test_what_was_folded_can_be_encoded(text: str) -> None:
    fold(text)[0].encode()
    assert len(without_surrogates(text)) == len(text)


@given(JAPANESE)
@settings(max_examples=300)
def test_folding_twice_is_folding_once_but_for_marks_after_invisible_characters(text: str) -> None:
    text = text.replace("\u200b", "").replace("\U000e0100", "")
    once = fold(text)[0]
    assert fold(once)[0] == once


@given(JAPANESE | ANY_TEXT)
def test_a_key_is_its_own_key(text: str) -> None:
    assert name_key(name_key(text)) == name_key(text)


def test_a_span_inside_a_cluster_covers_the_whole_cluster() -> None:
    folded, offsets = fold("A㍿B")
    assert folded == "a株式会社b"
    assert source_span(offsets, 3, 5) == (1, 2)
    assert source_span(offsets, 0, 2) == (0, 2)
    assert source_span(offsets, 6, 6) == (3, 3)


SAME = [
    ("サーバ", "サーバー"),
    ("エレベータ", "エレベーター"),
    ("ﾌｫｰｸﾘﾌﾄ", "フォークリフト"),
    ("ＦＡ推進室", "FA推進室"),
    ("㈱高橋", "株式会社髙橋"),
    ("（株）高橋", "(株)高橋"),
    ("山田 太郎", "山田\u3000太郎"),
    ("山田太郎", "山田 太郎"),
    ("「第一工場」", "第一工場"),
    ("F-17", "ｆ‐１７"),
    ("Acme  Corp", "acme corp"),
    ("渡邉", "渡邊"),
    ("品質\r\n管理課", "品質管理課"),
]
DIFFERENT = [
    ("サーバ", "サーベイ"),
    ("東京", "京都"),
    ("F-17", "F-170"),
    ("斉藤", "斎藤"),
    ("コピー", "コピ"),
    ("株式会社山田", "山田株式会社"),
    ("株式会社山田", "有限会社山田"),
    ("株式会社山田", "山田"),
    ("保全課", "保全部"),
    ("ビル", "ビール"),
    ("ハンドル", "バンドル"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_these_are_one_name(one: str, other: str) -> None:
    assert name_key(one) == name_key(other) != ""


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_these_are_two_names(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("㈱山田製作所", "山田製作所"),
        ("山田製作所（株）", "山田製作所"),
        ("有限会社山田", "山田"),
        ("Yamada Co., Ltd.", "yamada"),
        ("Yamada Inc.", "yamada"),
        ("株式会社", "株式会社"),
        ("株式会社山田株式会社", "山田"),
        ("Zinc", "zinc"),
    ],
)
def test_the_core_of_a_company_name(name: str, core: str) -> None:
    assert company_core(name_key(name)) == core


@pytest.mark.parametrize("name", POISON)
def test_nothing_raises(name: str) -> None:
    company_core(name_key(POISON[name]))
