"""The table of other spellings: what the rule makes of a word, and that the table leads to words in one step."""

import pytest

from ops.sudachi_spellings import without_okurigana
from pipeline.text.spellings import spellings


@pytest.mark.parametrize(
    ("word", "spelled"),
    [
        ("取り扱い", {"取扱い", "取扱"}),
        ("打ち合わせ", {"打ち合せ", "打合わせ", "打合せ", "打合"}),
        ("置き場", {"置場"}),
        ("田植え", {"田植"}),
        ("申し込む", {"申込む", "申込"}),
        ("点検", set()),
    ],
)
def test_okurigana_left_out_as_the_notice_allows(word: str, spelled: set[str]) -> None:
    assert set(without_okurigana(word)) == spelled


def test_no_spelling_leads_to_another_spelling() -> None:
    table = spellings()
    assert len(table.words) > 10_000 and len(table.wholes) > 10_000
    assert not table.words.keys() & {*table.words.values(), *table.wholes.values()}
    assert all(len(parts) in (2, 3) for parts in table.wholes)
