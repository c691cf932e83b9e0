"""How sure a figure is: confidence intervals by the bootstrap, and paired tests between two configurations.

Questions about the same documents are no independent observations: they are drawn, and their differences change sign,
together (a cluster bootstrap; Davison and Hinkley, "Bootstrap Methods and their Application", 1997, 3.8).
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ops.evaluation.golden import SEED, GoldenQuestion

LEVEL = 0.95
RESAMPLES = 9_999
_BATCH = 250
"""Resamples drawn at once: bounds memory, and with it the time of a page fault."""

Values = NDArray[np.float64]
Groups = NDArray[np.intp]


class Estimate(msgspec.Struct, frozen=True):
    """A mean over questions with its interval at `LEVEL`."""

    mean: float
    low: float | None
    """None, like `high`, when there is one group only: that has no interval."""
    high: float | None
    n: int
    """Questions."""
    groups: int
    """Groups of questions about the same documents."""

    def __str__(self) -> str:
        between = "" if self.low is None or self.high is None else f" ({self.low:.4f} to {self.high:.4f})"
        return f"{self.mean:.4f}{between}"


class Comparison(msgspec.Struct, frozen=True):
    """A configuration against the baseline, on the same questions."""

    difference: Estimate
    """Of the means: above 0 where the configuration is better."""
    p: float | None
    """Of a difference at least as large if the labels of each group were tossed, two-sided; None with one group."""
    better: int
    """Questions on which the configuration is better."""
    worse: int


def grouped(questions: Sequence[GoldenQuestion]) -> Groups:
    """Return the group of each question: those with the same set of best documents are one."""
    names = [
        frozenset(key for key, grade in q.relevant.items() if grade == max(q.relevant.values())) for q in questions
    ]
    numbers: dict[frozenset[str], int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp)


def estimates(table: Values, groups: Groups, seed: int = SEED) -> list[Estimate]:
    """Return, for each column of values by question, its mean and percentile interval.

    The bootstrap of Efron and Tibshirani ("An Introduction to the Bootstrap", 1993, 13.3) with groups drawn with
    replacement: how often each is drawn is multinomial.
    """
    sums, sizes = _by_group(table, groups)
    means, number = table.mean(axis=0), len(sizes)
    if number < 2:
        return [Estimate(float(mean), None, None, len(table), number) for mean in means]
    drawn = np.random.default_rng(seed)
    parts = []
    for start in range(0, RESAMPLES, _BATCH):
        times = drawn.multinomial(number, np.full(number, 1 / number), size=min(_BATCH, RESAMPLES - start))
        parts.append((times @ sums) / (times @ sizes)[:, None])
    low, high = np.quantile(np.concatenate(parts), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return [
        Estimate(float(mean), float(lower), float(upper), len(table), number)
        for mean, lower, upper in zip(means, low, high, strict=True)
    ]


def compared(ours: Values, baseline: Values, groups: Groups, seed: int = SEED) -> Comparison:
    """Test the difference of two means by paired randomization.

    Fisher's test as Smucker, Allan and Carterette compare it with others for retrieval ("A Comparison of Statistical
    Significance Tests for Information Retrieval Evaluation", CIKM 2007): under the null hypothesis the labels of the
    two configurations can be exchanged for each group of questions. Exact where there are few groups, else by
    `RESAMPLES` random signs, so that the smallest p is 2 / (RESAMPLES + 1).
    """
    differences = ours - baseline
    table = differences[:, None]
    sums = _by_group(table, groups)[0][:, 0]
    return Comparison(
        difference=estimates(table, groups, seed)[0],
        p=_randomization(sums, seed) if len(sums) > 1 else None,
        better=int((differences > 0).sum()),
        worse=int((differences < 0).sum()),
    )


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Adjust the p of several tests (Holm, 1979), keeping their order; None is no test."""
    tests = sorted((p, number) for number, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, number) in enumerate(tests):
        highest = max(highest, min(1.0, p * (len(tests) - rank)))
        adjusted[number] = highest
    return adjusted


def _randomization(sums: Values, seed: int) -> float:
    from scipy import stats

    if not sums.any():
        return 1.0
    found: Any = stats.permutation_test(
        (sums, np.zeros_like(sums)),
        lambda x, y, axis: (x - y).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _by_group(table: Values, groups: Groups) -> tuple[Values, Values]:
    """Return the sum of each column in each group, and the questions of each group. Groups need not be all there."""
    _, numbers = np.unique(groups, return_inverse=True)
    sums = [np.bincount(numbers, weights=column) for column in table.T]
    return np.stack(sums, axis=1), np.bincount(numbers).astype(np.float64)
