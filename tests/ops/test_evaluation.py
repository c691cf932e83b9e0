"""The scores of `make eval`."""

import pytest

from ops.evaluation import golden, score


@pytest.mark.parametrize(
    ("found", "ndcg", "recall", "first"),
    [
        (["a", "b", "c"], 1.0, 1.0, 1.0),
        (["x", "y"], 0.0, 0.0, 0.0),
        ([], 0.0, 0.0, 0.0),
        (["b", "a", "c"], 0.8428, 1.0, 0.0),
        (["x"] * 10 + ["a", "b"], 0.0, 0.0, 0.0),
    ],
)
def test_scores(found: list[str], ndcg: float, recall: float, first: float) -> None:
    scores = score(found, {"a": 3, "b": 2, "c": 1})
    assert scores.ndcg == pytest.approx(ndcg, abs=0.001)
    assert (scores.recall, scores.first) == (recall, first)


def test_a_question_without_good_documents_has_nothing_to_miss() -> None:
    assert score(["a"], {"a": 1}).recall == 1.0


def test_every_kind_of_question_is_there() -> None:
    assert {q.kind for q in golden()} == {"identifier", "proper_noun", "sentence", "concept", "compound", "keyword"}
