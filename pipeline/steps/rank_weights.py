"""From weights and features to scores."""

import numpy as np

from pipeline.steps.rank_features import DENSE, FEATURES, Floats
from schemas.ranking_model import RankingModel


def weights(ranking: RankingModel, query_type: str, alpha: float | None = None) -> Floats:
    """Return the weight of each feature for a type of query; they sum to 1. A given `alpha` is the share of `dense`."""
    more = ranking.by_type.get(query_type, {})
    given = np.array([ranking.weights.get(name, 0.0) + more.get(name, 0.0) for name in FEATURES])
    if alpha is not None:
        dense = np.array([name in DENSE for name in FEATURES])
        given = np.where(dense, 0.0, given)
        given = given / (given.sum() or 1.0) * (1 - alpha)
        given[FEATURES.index("dense")] = alpha
    return given / (given.sum() or 1.0)
