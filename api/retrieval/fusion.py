"""Fusion of the lexical and the dense list."""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from pipeline.ports.chunk_index import IndexHit
from schemas.query import Fusion

RRF_K = 60
"""Cormack, Clarke and Buettcher 2009."""
SPREAD = 3
"""Standard deviations about the mean that distribution-based fusion maps to 0..1 (Mazzeschi 2023; Qdrant's DBSF)."""


class Fused(msgspec.Struct, frozen=True):
    """A chunk with its place in each list (from 1) and its score there, and its score over both."""

    id: str
    document: str
    score: float
    bm25: int | None
    dense: int | None
    bm25_score: float | None = None
    dense_score: float | None = None


def fuse(lexical: Sequence[IndexHit], dense: Sequence[IndexHit], method: Fusion, alpha: float) -> list[Fused]:
    """Return both lists as one, best first; ties by document and id. `alpha` is the weight of `dense`."""
    score = _METHODS.get(method, _relative)
    words, meanings = score(lexical, 1 - alpha), score(dense, alpha)
    places = {hit.id: place for place, hit in enumerate(dense, 1)}
    fused: list[Fused] = []
    for n, hit in enumerate(lexical, 1):
        place = places.pop(hit.id, None)
        also = None if place is None else dense[place - 1].score
        total = words[hit.id] + meanings.get(hit.id, 0.0)
        fused.append(Fused(hit.id, hit.document, total, n, place, hit.score, also))
    for chunk, place in places.items():
        hit = dense[place - 1]
        fused.append(Fused(chunk, hit.document, meanings[chunk], None, place, None, hit.score))
    return sorted(fused, key=lambda hit: (-hit.score, hit.document, hit.id))


def _relative(hits: Sequence[IndexHit], weight: float) -> Mapping[str, float]:
    """Scale each list to 0..1; its worst hit gets 0, which still is a hit."""
    if not hits:
        return {}
    scores = [hit.score for hit in hits]
    bottom = min(scores)
    spread = max(scores) - bottom
    return {h.id: weight * ((h.score - bottom) / spread if spread else 1.0) for h in hits}


def _distribution(hits: Sequence[IndexHit], weight: float) -> Mapping[str, float]:
    """Scale each list by its mean and deviation, so that one far-off score does not press the others together."""
    if not hits:
        return {}
    mean = math.fsum(h.score for h in hits) / len(hits)
    deviation = math.sqrt(math.fsum((h.score - mean) ** 2 for h in hits) / len(hits))
    low, spread = mean - SPREAD * deviation, 2 * SPREAD * deviation
    return {h.id: weight * (min(1.0, max(0.0, (h.score - low) / spread)) if spread else 0.5) for h in hits}


def _rrf(hits: Sequence[IndexHit], _: float) -> Mapping[str, float]:
    """Reciprocal ranks, both lists alike."""
    return {hit.id: 1 / (RRF_K + n) for n, hit in enumerate(hits, 1)}


def _weighted(hits: Sequence[IndexHit], weight: float) -> Mapping[str, float]:
    """Reciprocal ranks, weighted."""
    return {hit.id: weight / (RRF_K + n) for n, hit in enumerate(hits, 1)}


_METHODS: dict[str, Callable[[Sequence[IndexHit], float], Mapping[str, float]]] = {
    "rrf": _rrf,
    "weighted": _weighted,
    "distribution": _distribution,
}
