"""From golden sets to the weights of both stages, with what they are worth on questions that they have not seen."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np

from ops.tuning.fit import Floats, Sample, batch, columns, design, fit, folds, ndcg
from ops.tuning.samples import SampleSet
from pipeline.errors import InvalidConfiguration
from pipeline.steps.rank_features import DENSE, FEATURES
from schemas.ranking_model import Figures, RankingModel

FOLDS = 5
PENALTY = 0.02
TYPE_PENALTY = 0.06
"""On what a type adds: few questions of a type should not move far."""
FITTED = tuple(name for name in FEATURES if name != "dense_alone")
TYPED = tuple(name for name in FITTED if name in DENSE)
GRID = tuple(n / 20 for n in range(15))
"""Dense weights tried for the first stage."""
PSEUDO = 30
"""Questions of all types that each type's choice of a dense weight is mixed with."""
_BM25, _DENSE = FEATURES.index("bm25"), FEATURES.index("dense_alone")


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """Weights, and the nDCG of each question of each set before and after, by weights that had not seen it."""

    ranking: RankingModel
    before: dict[str, list[float]]
    after: dict[str, list[float]]


def tune(sets: Sequence[SampleSet], command: str, seed: int) -> Tuned:
    """Fit on all sets, each with the same total weight; a document's title is never on both sides of a fold.

    Raises InvalidConfiguration where a fold leaves no question to learn from.
    """
    samples, names, held = _samples(sets)
    types = sorted({sample.query_type for sample in samples})
    after = np.zeros(len(samples))
    for fold in folds([sample.group for sample in samples], FOLDS, seed):
        seen = [s for s, h in zip(samples, held, strict=True) if s.group not in fold and not h]
        weights = _fitted(seen, types)
        for n, sample in enumerate(samples):
            if sample.group in fold:
                after[n] = ndcg(sample, _scores(sample, weights, types))
    before = np.array([ndcg(sample, -np.arange(len(sample.grades), dtype=np.float64)) for sample in samples])
    figures = tuple(_figures(name, names, before, after) for name in dict.fromkeys(names))
    seen = [s for s, h in zip(samples, held, strict=True) if not h]
    ranking = _ranking(sets, seen, types, figures, command, seed)
    rows = {f.name: [n for n, name in enumerate(names) if name == f.name] for f in figures}
    return Tuned(
        ranking=ranking,
        before={name: before[at].tolist() for name, at in rows.items()},
        after={name: after[at].tolist() for name, at in rows.items()},
    )


def _samples(sets: Sequence[SampleSet]) -> tuple[list[Sample], list[str], list[bool]]:
    samples: list[Sample] = []
    names: list[str] = []
    held: list[bool] = []
    total = sum(len(one.questions) for one in sets)
    for one in sets:
        weight = total / len(sets) / (len(one.questions) or 1)
        samples += [msgspec.structs.replace(kept.sample(), weight=weight) for kept in one.questions]
        names += [one.told.name] * len(one.questions)
        held += [kept.held for kept in one.questions]
    return samples, names, held


def _fitted(samples: Sequence[Sample], types: Sequence[str]) -> Floats:
    if not any(sample.grades.any() for sample in samples):
        raise InvalidConfiguration(
            "too few questions to learn from: cross-validation needs good documents of several titles among the "
            "candidates of those that are not held out"
        )
    wanted = columns(FITTED, TYPED, types)
    penalty = np.array([TYPE_PENALTY if kind else PENALTY for _, kind in wanted])
    return fit(batch(samples, FEATURES, wanted), penalty, np.array([0.0 if kind else 1.0 for _, kind in wanted]))


def _scores(sample: Sample, weights: Floats, types: Sequence[str]) -> Floats:
    scores: Floats = design(sample, FEATURES, columns(FITTED, TYPED, types)) @ weights
    return scores


def _figures(name: str, names: Sequence[str], before: Floats, after: Floats) -> Figures:
    at = [n for n, other in enumerate(names) if other == name]
    return Figures(
        name=name,
        questions=len(at),
        first_stage=round(float(before[at].mean()), 4),
        reranked=round(float(after[at].mean()), 4),
    )


def _ranking(
    sets: Sequence[SampleSet],
    samples: Sequence[Sample],
    types: Sequence[str],
    figures: tuple[Figures, ...],
    command: str,
    seed: int,
) -> RankingModel:
    weights = _fitted(samples, types)
    wanted = columns(FITTED, TYPED, types)
    total = sum(float(w) for (_, kind), w in zip(wanted, weights, strict=True) if not kind) or 1.0
    rounded = {key: round(float(w) / total, 4) for key, w in zip(wanted, weights, strict=True)}
    by_type = {kind: {n: w for (n, k), w in rounded.items() if k == kind and w} for kind in types}
    return RankingModel(
        encoder=sets[0].encoder,
        alphas=_alphas(samples, types),
        weights={name: w for (name, kind), w in rounded.items() if not kind and w},
        by_type={kind: more for kind, more in by_type.items() if more},
        fitted_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        fitted_with=command,
        analyzer=sets[0].analyzer,
        fitted_on=tuple(one.told for one in sets),
        held_out=figures,
        seed=seed,
    )


def _alphas(samples: Sequence[Sample], types: Sequence[str]) -> dict[str, float]:
    """Return for each type the dense weight with the best mean, mixed with that of all types."""
    table = np.array(
        [[ndcg(s, (1 - a) * s.features[:, _BM25] + a * s.features[:, _DENSE]) for a in GRID] for s in samples]
    )
    share = np.array([sample.weight for sample in samples])
    overall = (table * share[:, None]).sum(axis=0) / share.sum()
    chosen = {}
    for kind in types:
        at = [n for n, sample in enumerate(samples) if sample.query_type == kind]
        mixed = table[at].sum(axis=0) + PSEUDO * overall
        chosen[kind] = GRID[int(np.argmax(np.round(mixed, 9)))]
    return chosen
