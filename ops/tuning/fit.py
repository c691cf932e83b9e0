"""Fitting: weights of 0 or more under which good passages stand before others, by the listwise loss of ListNet.

Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach" (2007), with one linear layer, grades as
gains, and an L2 penalty. Projected gradient steps with Adam's step sizes (Kingma and Ba 2015): 20 numbers need no more.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

STEPS = 400
RATE = 0.1
CUT = 10


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A question with the features of its candidates, a row each."""

    group: str
    """Samples of one group are never on both sides of a fold."""
    query_type: str
    features: Floats
    grades: Floats
    """0 for what is not good."""
    documents: tuple[str, ...]
    exact: tuple[int, ...] = ()
    """1 for those with an asked identifier: they stand first whatever the weights say."""
    best: float
    """The discounted gain of an ideal ranking; 0 leaves the question out."""
    weight: float = 1.0


class Batch(msgspec.Struct, frozen=True):
    """Samples one below the other: all rows, and where each sample begins."""

    rows: Floats
    starts: Whole
    owner: Whole
    gains: Floats
    """Share of each row in its sample's gain, times the sample's weight."""
    weights: Floats


def columns(features: Sequence[str], typed: Sequence[str], types: Sequence[str]) -> list[tuple[str, str]]:
    """Return (feature, type) of each column of the design: shared ones first, type empty."""
    return [(name, "") for name in features] + [(name, kind) for kind in types for name in typed]


def design(sample: Sample, features: Sequence[str], wanted: Sequence[tuple[str, str]]) -> Floats:
    """Return the sample's rows in these columns; those of other types are 0."""
    at = {name: n for n, name in enumerate(features)}
    table = np.zeros((len(sample.features), len(wanted)))
    for n, (name, kind) in enumerate(wanted):
        if kind in ("", sample.query_type):
            table[:, n] = sample.features[:, at[name]]
    return table


def batch(samples: Sequence[Sample], features: Sequence[str], wanted: Sequence[tuple[str, str]]) -> Batch:
    """Put the samples that hold something good together."""
    kept = [s for s in samples if s.grades.any()]
    gains = [s.weight * _gain(s.grades) / _gain(s.grades).sum() for s in kept]
    sizes = np.array([len(s.grades) for s in kept])
    return Batch(
        np.concatenate([design(s, features, wanted) for s in kept]),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]),
        np.repeat(np.arange(len(kept)), sizes),
        np.concatenate(gains),
        np.array([s.weight for s in kept]),
    )


def fit(data: Batch, penalty: Floats, start: Floats) -> Floats:
    """Return the weights with the least penalized loss, none below 0."""
    weights, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    total = data.weights.sum()
    target = data.rows.T @ data.gains
    for step in range(1, STEPS + 1):
        scores = data.rows @ weights
        scores -= np.maximum.reduceat(scores, data.starts)[data.owner]
        likely = np.exp(scores)
        likely *= (data.weights / np.add.reduceat(likely, data.starts))[data.owner]
        slope = (data.rows.T @ likely - target) / total + penalty * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        rate = RATE * min(1.0, 2 * (1 - step / STEPS))
        moved = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        weights = np.maximum(weights - rate * moved, 0.0)
    return weights


def ndcg(sample: Sample, scores: Floats, cut: int = CUT) -> float:
    """Return nDCG over documents, each at the place of its first passage; ties by the order that was given."""
    exact = np.array(sample.exact or [0] * len(scores))
    order = np.lexsort((np.arange(len(scores)), -scores, -exact))
    grades: dict[str, float] = {}
    for n in order:
        grades.setdefault(sample.documents[n], float(sample.grades[n]))
    gains = _gain(np.array(list(grades.values())[:cut]))
    return float((gains / np.log2(np.arange(len(gains)) + 2)).sum() / sample.best) if sample.best else 0.0


def ideal(grades: Sequence[int], cut: int = CUT) -> float:
    """Return the discounted gain of the best ranking of documents with these grades."""
    gains = _gain(np.array(sorted(grades, reverse=True)[:cut], np.float64))
    return float((gains / np.log2(np.arange(len(gains)) + 2)).sum())


def folds(groups: Sequence[str], number: int, seed: int) -> list[set[str]]:
    """Deal the groups out, the same for the same seed."""
    names = sorted(set(groups))
    dealt = np.random.default_rng(seed).permutation(len(names))
    return [{names[i] for i in dealt[n::number]} for n in range(number)]


def _gain(grades: Floats) -> Floats:
    return np.exp2(grades) - 1.0
