"""Measures against values worked out by hand from their definitions."""

import math
from collections.abc import Mapping, Sequence

import pytest

from ops.evaluation.golden import GoldenQuestion
from ops.evaluation.measures import DEFAULT, Measure, measure, measured
from pipeline.errors import InvalidConfiguration

GRADES = {"a": 3, "b": 2, "c": 1}


def value(name: str, found: Sequence[str], relevant: Mapping[str, int] = GRADES, relevant_from: int = 1) -> float:
    question = GoldenQuestion(id="q", question="x", relevant=dict(relevant))
    return float(measured([question], [found], [measure(name)], relevant_from)[0, 0])


def gain(*grades: int) -> float:
    return math.fsum(((1 << grade) - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["a", "b", "c"], 1.0),
        (["b", "a", "c"], gain(2, 3, 1) / gain(3, 2, 1)),
        (["x", "a"], gain(0, 3) / gain(3, 2, 1)),
        (["x"] * 10 + ["a", "b"], 0.0),
        ([], 0.0),
    ],
)
def test_ndcg_takes_two_to_the_grade_less_one_and_the_logarithm_of_the_rank(found: list[str], expected: float) -> None:
    unique = [f"{key}{place}" if key == "x" else key for place, key in enumerate(found)]
    assert value("nDCG@10", unique) == pytest.approx(expected)


def test_the_ideal_ranking_is_cut_too() -> None:
    assert value("nDCG@1", ["b"]) == pytest.approx(3 / 7)


@pytest.mark.parametrize(
    ("name", "found", "expected"),
    [
        ("MRR", ["x", "y", "b", "a"], 1 / 3),
        ("MRR", ["x"], 0.0),
        ("P@1", ["c", "x"], 1.0),
        ("P@5", ["c", "x", "a"], 2 / 5),  # fewer than five found: the missing ones are not relevant
        ("recall@2", ["a", "x", "b", "c"], 1 / 3),
        ("recall@10", ["x", "c", "b"], 2 / 3),
        ("MAP", ["a", "x", "b"], (1 / 1 + 2 / 3) / 3),  # what is never found counts as 0
        ("MAP", ["x", "y"], 0.0),
    ],
)
def test_measures_of_relevant_or_not(name: str, found: list[str], expected: float) -> None:
    assert value(name, found) == pytest.approx(expected)


def test_the_lowest_relevant_grade_can_be_raised() -> None:
    assert value("recall@10", ["c", "b"], relevant_from=2) == 0.5
    assert value("MRR", ["c", "b"], relevant_from=2) == 0.5
    assert value("P@1", ["b"], relevant_from=3) == 0.0
    assert value("nDCG@10", ["c"], relevant_from=3) == value("nDCG@10", ["c"])  # it uses all grades


def test_grades_of_zero_are_not_relevant() -> None:
    assert value("MRR", ["z", "a"], {"a": 1, "z": 0}) == 0.5
    assert value("nDCG@10", ["z", "a"], {"a": 1, "z": 0}) == pytest.approx(1 / math.log2(3))


def test_every_question_has_a_value_in_its_own_row() -> None:
    questions = [GoldenQuestion(id=str(n), question="x", relevant={f"s/c/{n}": 1}) for n in range(300)]
    rankings = [[f"s/c/{n}"] if n % 3 == 0 else [] for n in range(300)]
    table = measured(questions, rankings, DEFAULT)
    assert [bool(row.all()) for row in table] == [n % 3 == 0 for n in range(300)]


def test_ids_may_hold_anything_and_the_order_of_the_ranking_decides_not_their_names() -> None:
    odd = {"s/c/部品 表\t1": 1}
    assert value("MRR", ["s/c/z", "s/c/部品 表\t1", "s/c/a"], odd) == 0.5


def test_a_long_ranking_keeps_its_order() -> None:
    found = [f"d{n}" for n in range(1000)]
    assert value("MRR", found, {"d999": 1}) == pytest.approx(1 / 1000)


@pytest.mark.parametrize("text", ["ndcg@10", "NDCG@10", " nDCG@10 "])
def test_names_are_read_in_any_case(text: str) -> None:
    assert measure(text) == Measure("nDCG", 10)


def test_the_library_names_are_known_too() -> None:
    assert [str(measure(text)) for text in ("R@5", "RR", "AP", "P@1")] == ["recall@5", "MRR", "MAP", "P@1"]


@pytest.mark.parametrize("text", ["", "ndcg", "recall", "P@0", "mrr@10", "f1", "ndcg@-1", "ndcg@10x"])
def test_what_is_no_measure_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="is no measure"):
        measure(text)
