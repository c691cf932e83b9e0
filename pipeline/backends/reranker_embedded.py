"""A second stage without a model to download: a weighted sum of what can be told of a passage (rank_features)."""

import asyncio
from collections.abc import Sequence

import numpy as np

from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.steps.rank_features import features
from pipeline.steps.rank_weights import weights
from schemas.ranking_model import RankingModel


class EmbeddedReranker:
    """Implements Reranker with fitted weights; a few milliseconds for 50 passages, off the event loop."""

    note = ""

    def __init__(self, ranking: RankingModel) -> None:
        self._ranking = ranking
        self.model = f"features/{ranking.fitted_at or 'unfitted'}"

    async def rerank(
        self, question: RerankQuestion, passages: Sequence[RerankPassage], *, budget_s: float
    ) -> list[float]:
        """See Reranker.rerank. Scores are 0 to 1. The caller's time limit is the only one: nothing is waited for."""
        return await asyncio.to_thread(scores, self._ranking, question, passages) if passages else []

    async def close(self) -> None:
        """See Reranker.close."""


def scores(ranking: RankingModel, question: RerankQuestion, passages: Sequence[RerankPassage]) -> list[float]:
    """Return the scores; they depend on the set of passages, not on its order."""
    found = features(question, passages) @ weights(ranking, question.query_type, question.alpha)
    return [float(score) for score in np.round(found, 9)]
