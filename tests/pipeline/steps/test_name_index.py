"""Declared names in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ports.state import DeclaredName
from pipeline.steps.name_index import MAX_MEANINGS, NameIndex
from pipeline.text.normalize import fold, name_key


def index(*names: str) -> NameIndex:
    return NameIndex([DeclaredName(name_key(n), "person", name_key(n), "d") for n in names])


def found(text: str, *names: str) -> list[str]:
    folded = fold(text)[0]
    return [folded[m.start : m.end] for m in index(*names).find_folded(folded)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("田中が来た", "田中"),
        ("物流課田中", "田中"),
        ("田中課長に聞く", "田中"),
        ("担当は田中。", "田中"),
        ("田 中さん", "田中"),
        ("髙橋健一の報告", "高橋健一"),
        ("保全課渡邉誠太", "渡邉誠太"),
        ("ファイルサーバーを止める", "ファイルサーバ"),
        ("ファイルサーバが止まる", "ファイルサーバー"),
        ("Ｇｒｅｅｎラインの件", "greenライン"),
        ("17号車が坂を", "17号車"),
        ("みどりは元気", "みどり"),
        ("赤リフトの充電", "赤リフト"),
    ],
)
def test_a_name_is_found_as_a_word(text: str, name: str) -> None:
    assert [name_key(n) for n in found(text, name)] == [name_key(name)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("田中島へ行く", "田中"),
        ("大山根の件", "山根"),
        ("117号車", "17号車"),
        ("タワークレーンゲーム", "クレーン"),
        ("クレーンゲーム", "クレーン"),
        ("subgreen", "green"),
        ("green-7", "green"),
        ("あみどり", "みどり"),
        ("田", "田"),
        ("2025", "2025"),
    ],
)
def test_a_name_is_not_found_inside_a_longer_word(text: str, name: str) -> None:
    assert found(text, name) == []


def test_the_longest_name_wins_and_none_overlap() -> None:
    assert found("北浜物流センター第2荷さばき場", "北浜物流センター", "北浜", "物流センター") == ["北浜物流センター"]


def test_names_of_several_entities() -> None:
    some = [DeclaredName("赤リフト", "equipment", f"k{n}", "d") for n in range(MAX_MEANINGS)]
    assert [e.key for m in NameIndex(some).find("赤リフト") for e in m.entities] == ["k0", "k1", "k2"]
    assert NameIndex([*some, DeclaredName("赤リフト", "equipment", "k9", "d")]).find("赤リフト") == []


@given(
    st.lists(st.text("田中一ア1ー a-", min_size=1, max_size=4), max_size=8), st.text("田中島アイー1a- 。", max_size=30)
)
def test_matches_are_names_and_do_not_depend_on_order(names: list[str], text: str) -> None:
    folded = fold(text)[0]
    matches = index(*names).find_folded(folded)
    assert matches == index(*names[::-1]).find_folded(folded)
    keys = {name_key(n) for n in names}
    at = 0
    for match in matches:
        assert match.start >= at
        assert match.entities[0].key in keys
        assert folded[match.start : match.end].replace(" ", "").replace("ー", "") == (
            match.entities[0].key.replace(" ", "").replace("ー", "")
        )
        at = match.end
