"""Weights of lists fitted on the golden set itself, each question's on the pages of other folds."""

import hashlib
from collections.abc import Mapping
from itertools import product

import numpy as np

from ops.bench.study.candidates import Fused
from ops.evaluation.golden import GoldenQuestion, GoldenSet

FOLDS = 5
STEPS = 10
"""Weights are tried in tenths that add up to 1."""
CUT = 10


def crossed_weights(golden: GoldenSet, known: Mapping[str, Fused]) -> dict[str, list[float]]:
    """Return the weights of each question: those with the best mean nDCG@10 over the questions of the other folds.

    Questions of one page are in one fold, so none is ranked by weights that saw its page.
    """
    numbers = {each.id: number for number, each in enumerate(golden.passages)}
    titles = {each.id: each.title for each in golden.passages}
    folds = np.array([_fold(titles.get(_plain(question), "")) for question in golden.questions])
    lists = next(iter(known.values())).shares.shape[0]
    tried = [np.array(tenths) / STEPS for tenths in product(range(STEPS + 1), repeat=lists) if sum(tenths) == STEPS]
    values = np.array(
        [[_ndcg(known[question.id], question, numbers, weights) for weights in tried] for question in golden.questions]
    )
    best = {fold: tried[int(values[folds != fold].mean(axis=0).argmax())].tolist() for fold in range(FOLDS)}
    return {question.id: best[int(fold)] for question, fold in zip(golden.questions, folds, strict=True)}


def _ndcg(found: Fused, question: GoldenQuestion, numbers: Mapping[str, int], weights: np.ndarray) -> float:
    grades = {numbers.get(key.rpartition("/")[2], -1): grade for key, grade in question.relevant.items()}
    order = found.by_weights(weights.tolist())[:CUT]
    gains = [2.0 ** grades.get(document, 0) - 1 for document in order]
    ideal = sorted((2.0**grade - 1 for grade in grades.values()), reverse=True)[:CUT]
    return _discounted(gains) / _discounted(ideal)


def _discounted(gains: list[float]) -> float:
    return float(sum(gain / np.log2(rank + 1) for rank, gain in enumerate(gains, 1)))


def _plain(question: GoldenQuestion) -> str:
    """Return the id of the first best passage: its page is the question's."""
    best = min(question.relevant, key=lambda key: (-question.relevant[key], key))
    return best.rpartition("/")[2]


def _fold(title: str) -> int:
    return hashlib.sha256(title.encode()).digest()[0] % FOLDS
