"""`shinsen tune`: from golden questions through a running product to a file of weights that the product takes."""

import json
from pathlib import Path

import numpy as np
import pytest

from ops.evaluation.formats import Place, read_golden
from ops.evaluation.golden import BadGolden
from ops.tuning.fit import Sample, batch, columns, fit, folds, ideal, ndcg
from ops.tuning.samples import Kept, SampleSet, some
from ops.tuning.tuning import tune
from pipeline.errors import InvalidConfiguration
from pipeline.ranking import dump_ranking, load_ranking
from pipeline.steps.rank_features import FEATURES
from schemas.ranking_model import FittedOn


def kept(number: int, good: int, chance: np.random.Generator) -> Kept:
    """A question of which `words` tells the good passage and `bm25` is noise."""
    rows = chance.random((6, len(FEATURES))) * 0.2
    rows[:, FEATURES.index("bm25")] = chance.random(6)
    rows[good, FEATURES.index("words")] = 0.9
    grades = [3 if n == good else 0 for n in range(6)]
    return Kept(
        group=f"g{number // 2}",
        query_type="concept" if number % 3 else "short_keyword",
        features=rows.tolist(),
        grades=grades,
        documents=[f"d{n}" for n in range(6)],
        exact=[0] * 6,
        ideal=ideal([3]),
        held=number % 5 == 0,
    )


def golden_set(name: str = "made") -> SampleSet:
    chance = np.random.default_rng(7)
    questions = [kept(n, int(chance.integers(6)), chance) for n in range(60)]
    told = FittedOn(name=name, questions=60, digest="0" * 8)
    return SampleSet(told=told, encoder="e/1", analyzer="a", features=FEATURES, questions=questions)


def test_what_tells_good_passages_gets_the_weight_and_it_holds_on_unseen_questions() -> None:
    tuned = tune([golden_set()], "shinsen tune made.jsonl", seed=1)
    told = tuned.ranking.held_out[0]
    assert told.reranked > 0.95 > told.first_stage
    assert max(tuned.ranking.weights, key=lambda name: tuned.ranking.weights[name]) == "words"
    assert all(weight >= 0 for weight in tuned.ranking.weights.values())


def test_too_few_questions_are_refused_with_the_reason() -> None:
    one = golden_set()
    one.questions[:] = one.questions[1:2]
    with pytest.raises(InvalidConfiguration, match="too few questions"):
        tune([one], "shinsen tune made.jsonl", seed=1)


def test_the_same_samples_and_seed_give_the_same_weights() -> None:
    one, other = (tune([golden_set()], "again", seed=3).ranking for _ in range(2))
    assert (one.weights, one.by_type, one.alphas, one.held_out) == (
        other.weights,
        other.by_type,
        other.alphas,
        other.held_out,
    )


def test_a_group_is_on_one_side_of_every_fold() -> None:
    dealt = folds(["a", "b", "c", "a", "d", "e", "b"], 3, 1)
    assert sorted(name for fold in dealt for name in fold) == ["a", "b", "c", "d", "e"]


def test_ndcg_counts_documents_once_and_exact_ones_first() -> None:
    sample = Sample(
        group="g",
        query_type="concept",
        features=np.zeros((3, 1)),
        grades=np.array([0.0, 0.0, 1.0]),
        documents=("a", "a", "b"),
        best=ideal([1]),
    )
    assert ndcg(sample, np.array([3.0, 2.0, 1.0])) == pytest.approx(1 / np.log2(3))
    named = Sample(**{f: getattr(sample, f) for f in sample.__struct_fields__} | {"exact": (0, 0, 1)})
    assert ndcg(named, np.array([3.0, 2.0, 1.0])) == 1.0


def test_no_weight_falls_below_zero() -> None:
    sample = kept(1, 2, np.random.default_rng(1)).sample()
    worse = Sample(
        **{f: getattr(sample, f) for f in sample.__struct_fields__} | {"features": -sample.features},
    )
    data = batch([worse], FEATURES, columns(FEATURES, (), ()))
    assert (fit(data, np.zeros(len(FEATURES)), np.ones(len(FEATURES))) >= 0).all()


def test_the_written_file_is_read_back_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    ranking = tune([golden_set()], "shinsen tune made.jsonl", seed=1).ranking
    file = tmp_path / "ranking.yaml"
    file.write_text(dump_ranking(ranking), encoding="utf-8")
    assert load_ranking(file) == ranking
    for wrong in (
        "weights: {bm25: -1}",
        "weights: {hope: 1}",
        "alphas: {concept: 2}\nweights: {bm25: 1}",
        "{",
        "weights: {}",
    ):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(InvalidConfiguration, match=r"ranking\.yaml"):
            load_ranking(file)


def test_a_broken_golden_set_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "golden.jsonl"
    good = [json.dumps({"id": str(n), "question": "給水ポンプ", "relevant": {"a/b/c": 3}}) for n in range(9)]
    file.write_text(f"{good[0]}\n\n{{}}\n", encoding="utf-8")
    with pytest.raises(BadGolden, match=r"golden\.jsonl:3"):
        read_golden(file, Place())
    file.write_text("\n".join(good), encoding="utf-8")
    assert len(some(read_golden(file, Place()).questions, 4, 1)) == 4
