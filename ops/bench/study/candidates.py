"""The first documents of each retriever for a question, and the ways to make one ranking of them."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from ops.bench.study.bm25 import Scores

DEPTH = 100
"""Documents of each retriever that are fused."""


class Listed(msgspec.Struct, frozen=True):
    """What a retriever found: document numbers with scores, best first; ties by number."""

    documents: NDArray[np.int64]
    scores: Scores


def listed(scores: Scores, *, above: float = 0.0) -> Listed:
    """Return the first DEPTH documents whose score is above a bound."""
    order = np.lexsort((np.arange(len(scores)), -scores))[:DEPTH]
    order = order[scores[order] > above]
    return Listed(order, scores[order])


class Fused(msgspec.Struct, frozen=True):
    """Lists over one set of documents."""

    documents: NDArray[np.int64]
    """In ascending order."""
    shares: Scores
    """By list and document: the score between the least (0) and the best (1) of its list; 0 where it is not in it."""
    ranks: Scores
    """By list and document, from 1; infinite where it is not in it."""

    def by_weights(self, weights: Sequence[float]) -> list[int]:
        """Return the documents by relative scores, as Weaviate's relativeScoreFusion weighs them."""
        return self._ordered(np.asarray(weights, float) @ self.shares)

    def by_ranks(self, k: float) -> list[int]:
        """Return the documents by reciprocal ranks (Cormack, Clarke and Büttcher, SIGIR 2009)."""
        return self._ordered((1.0 / (k + self.ranks)).sum(axis=0))

    def _ordered(self, scores: Scores) -> list[int]:
        return [int(at) for at in self.documents[np.lexsort((self.documents, -scores))]]


def fused(lists: Sequence[Listed]) -> Fused:
    """Put lists side by side."""
    documents = np.unique(np.concatenate([found.documents for found in lists]))
    shares = np.zeros((len(lists), len(documents)))
    ranks = np.full((len(lists), len(documents)), np.inf)
    for row, found in enumerate(lists):
        at = np.searchsorted(documents, found.documents)
        least, best = (found.scores.min(), found.scores.max()) if len(at) else (0.0, 0.0)
        shares[row, at] = (found.scores - least) / (best - least) if best > least else 1.0
        ranks[row, at] = np.arange(1, len(at) + 1)
    return Fused(documents, shares, ranks)
