"""Intervals cover what they should; tests tell differences from noise; the same seed gives the same report."""

import math
from itertools import product

import numpy as np
import pytest

from ops.evaluation.golden import GoldenQuestion
from ops.evaluation.statistics import RESAMPLES, Estimate, Groups, Values, compared, estimates, grouped, holm

ALONE = np.arange(400)


def column(values: Values) -> Values:
    return values[:, None]


def bounds(found: Estimate) -> tuple[float, float]:
    assert found.low is not None and found.high is not None
    return found.low, found.high


def width(found: Estimate) -> float:
    low, high = bounds(found)
    return high - low


def p_of(ours: Values, baseline: Values, groups: Groups) -> float:
    p = compared(ours, baseline, groups).p
    assert p is not None
    return p


def test_an_interval_holds_its_mean_and_is_that_of_the_normal_approximation_for_many_questions() -> None:
    values = np.random.default_rng(1).random(400)
    found = estimates(column(values), ALONE)[0]
    error = values.std() / math.sqrt(400)
    assert found.mean == pytest.approx(values.mean()) and (found.n, found.groups) == (400, 400)
    low, high = bounds(found)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_intervals_cover_the_true_mean_as_often_as_they_say() -> None:
    drawn = np.random.default_rng(2)
    samples = drawn.random((120, 60)) ** 2  # skewed; the true mean is 1/3
    hits = [bounds(e)[0] <= 1 / 3 <= bounds(e)[1] for e in estimates(samples, np.arange(120))]
    assert np.mean(hits) >= 0.85


def test_questions_about_the_same_document_are_no_news() -> None:
    values = np.random.default_rng(3).random(100)
    once = estimates(column(values), np.arange(100))[0]
    fourfold = np.repeat(values, 4)
    together = estimates(column(fourfold), np.repeat(np.arange(100), 4))[0]
    apart = estimates(column(fourfold), ALONE)[0]
    assert width(together) == pytest.approx(width(once), rel=0.05)
    assert width(apart) == pytest.approx(width(once) / 2, rel=0.1)
    assert compared(fourfold, np.zeros(400), np.repeat(np.arange(100), 4)).difference.groups == 100


def test_questions_are_grouped_by_their_best_documents() -> None:
    relevant = [{"a": 1}, {"a": 1}, {"a": 3, "b": 1}, {"b": 1, "a": 1}, {"b": 2}]
    questions = [GoldenQuestion(id=str(n), question="x", relevant=each) for n, each in enumerate(relevant)]
    assert grouped(questions).tolist() == [0, 0, 0, 1, 2]


def test_the_same_seed_gives_the_same_interval_and_another_one_nearly_the_same() -> None:
    values = column(np.random.default_rng(4).random(400))
    assert estimates(values, ALONE, 7) == estimates(values, ALONE, 7)
    assert estimates(values, ALONE, 7)[0].low == pytest.approx(estimates(values, ALONE, 8)[0].low, abs=0.003)


def test_one_group_has_no_interval() -> None:
    found = estimates(np.array([[0.5], [1.0]]), np.array([0, 0]))[0]
    assert found.mean == 0.75 and found.low is None and found.high is None


def test_the_exact_test_of_a_few_questions_counts_signs() -> None:
    ours, baseline = np.array([0.9, 0.8, 0.7, 0.4, 0.6, 0.5]), np.array([0.5, 0.6, 0.6, 0.5, 0.3, 0.3])
    differences = ours - baseline
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in product((1, -1), repeat=6)]
    exact = np.mean([abs(total) >= abs(differences.sum()) - 1e-12 for total in sums])
    found = compared(ours, baseline, np.arange(6))
    assert found.p == pytest.approx(exact)
    assert (found.better, found.worse) == (5, 1)


def test_a_real_difference_is_seen_and_noise_is_not() -> None:
    drawn = np.random.default_rng(5)
    baseline = drawn.random(400)
    better = compared(baseline + 0.02 + drawn.normal(0, 0.05, 400), baseline, ALONE)
    assert better.p is not None and better.p <= 2 / (RESAMPLES + 1) and bounds(better.difference)[0] > 0
    noise = [p_of(baseline + drawn.normal(0, 0.05, 400), baseline, ALONE) for _ in range(20)]
    assert np.mean([p < 0.05 for p in noise]) <= 0.2


def test_no_difference_is_none() -> None:
    values = np.random.default_rng(6).random(400)
    found = compared(values, values, ALONE)
    assert found.p == 1.0 and (found.difference.mean, found.better, found.worse) == (0.0, 0, 0)


def test_the_test_is_the_same_from_both_sides() -> None:
    drawn = np.random.default_rng(7)
    one, other = drawn.random(12), drawn.random(12)
    there, back = compared(one, other, np.arange(12)), compared(other, one, np.arange(12))
    assert there.p == back.p and there.difference.mean == -back.difference.mean


def test_holm_multiplies_the_smallest_by_the_number_of_tests_and_never_falls() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([None, 0.02, 0.03]) == [None, pytest.approx(0.04), pytest.approx(0.04)]
