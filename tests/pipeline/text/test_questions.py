"""What an index is asked: exact values, synonyms for less, pieces of unknown words only."""

import pytest

from pipeline.text.lexicon import Lexicon
from pipeline.text.patterns import load_identifiers
from pipeline.text.synonyms import SUDACHI_WEIGHT, Synonym, SynonymGroup, Synonyms, sudachi_groups
from tests.contracts.texts import POISON

QUESTIONS = Lexicon(load_identifiers().patterns).analyzer().questions


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("2025年7月8日", ("2025-07-08",)),
        ("令和7年", ("2025",)),
        ("F-17 1,200円", ("f-17", "1200円")),
        ("総務第12号", ("総務第12号",)),
        ("湊川市告示第12号の道路", ("湊川市告示第12号", "道路")),
        ("8日の会議", ("8", "8日", "日", "会議")),
        ("点検と点検", ("点検",)),
        ("繰り越した", ("繰り越し",)),
        ("のは", ()),
        ("", ()),
    ],
)
def test_terms(text: str, terms: tuple[str, ...]) -> None:
    assert QUESTIONS.form(text).terms == terms


def test_a_date_beside_words_is_asked_for_with_its_parts() -> None:
    terms = QUESTIONS.form("令和7年7月8日の事故").terms
    assert {"2025-07-08", "2025-07", "2025", "07-08", "事故"} <= set(terms)


def test_synonyms_of_sudachi() -> None:
    assert dict(QUESTIONS.form("スマホの紛失").synonyms)["スマートフォン"] == SUDACHI_WEIGHT
    assert "コンピュータ" in dict(QUESTIONS.form("電子計算機").synonyms)
    assert dict(QUESTIONS.form("スマホとスマートフォン").synonyms).keys().isdisjoint({"スマホ", "スマートフォン"})


def test_parts_of_a_compound_count_for_less() -> None:
    form = QUESTIONS.form("立ち入り禁止")
    assert form.terms == ("立ち入り", "禁止")
    assert {"立つ", "入る"} <= dict(form.synonyms).keys()


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("京都", []),
        ("サーバ", []),
        ("ネトワーク", ["ネトワーク"]),
        ("F-170", []),
        ("11000", []),
        ("環太平洋大学", ["環太平洋大学"]),
    ],
)
def test_pieces_are_of_words_that_no_dictionary_knows(text: str, runs: list[str]) -> None:
    assert [run[0] + "".join(pair[1] for pair in run[1:]) for run in QUESTIONS.form(text).runs] == runs


def test_the_longest_word_decides_and_the_own_group_counts_beside_others() -> None:
    synonyms = Synonyms(
        [
            SynonymGroup((("保全", "課"), ("設備係",)), 0.8),
            SynonymGroup((("保全",), ("維持",)), 0.2),
            SynonymGroup((("係",), ("担当",), ("受け持ち", "の", "人")), 0.2),
        ]
    )
    assert synonyms.of(["保全", "課"]) == [Synonym("設備係", 0.8, 0, 2)]
    assert synonyms.of(["保全", "係"]) == [Synonym("維持", 0.2, 0, 1), Synonym("担当", 0.2, 1, 2)]
    assert synonyms.of([]) == []


def test_the_file_of_groups_is_as_its_maker_wrote_it() -> None:
    groups = sudachi_groups()
    assert len(groups) > 10_000
    members = [member for group in groups for member in group.members]
    assert all(len(group.members) > 1 for group in groups)
    assert len(members) == len(set(members))


@pytest.mark.parametrize("name", POISON)
def test_nothing_raises(name: str) -> None:
    QUESTIONS.form(POISON[name])
