"""The questions that were not written from the passages keep the form that evaluation and fitting read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "ops" / "bench" / "questions"
KINDS = {"natural_sentence", "concept", "short_keyword", "long_compound", "proper_noun", "identifier"}
KEYS = {"shared.jsonl": r"shared/passages/j[as]quad-[0-9]{5}", "demo.jsonl": r"[a-z]+/[a-z_]+/[A-Z0-9-]+"}
SETS = {"shared.jsonl": 150, "demo.jsonl": 40}


def _questions(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("name", "least"), SETS.items())
def test_each_question_has_a_kind_a_half_and_a_document_that_answers_it(name: str, least: int) -> None:
    questions = _questions(name)
    assert len(questions) >= least
    assert len({q["id"] for q in questions}) == len({q["question"] for q in questions}) == len(questions)
    assert {q["kind"] for q in questions} == KINDS
    for question in questions:
        assert question.keys() == {"id", "question", "kind", "split", "relevant"}
        assert set(question["relevant"].values()) <= {1, 2, 3}
        assert max(question["relevant"].values()) >= 2
        assert all(re.fullmatch(KEYS[name], key) for key in question["relevant"])


@pytest.mark.parametrize("name", SETS)
def test_the_halves_are_of_about_one_size(name: str) -> None:
    halves = [q["split"] for q in _questions(name)]
    assert set(halves) == {"fit", "held_out"}
    assert 0.3 <= halves.count("fit") / len(halves) <= 0.65
