"""Fusion of the lexical and the dense list."""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.ports.chunk_index import IndexHit
from schemas.query import Fusion

RRF_K = 60


class Fused(msgspec.Struct, frozen=True):
    """A chunk with its place in each list (from 1) and its score over both."""

    id: str
    document: str
    score: float
    bm25: int | None
    dense: int | None


def fuse(lexical: Sequence[IndexHit], dense: Sequence[IndexHit], method: Fusion, alpha: float) -> list[Fused]:
    """Return both lists as one, best first; ties by document and id. `alpha` is the weight of `dense`."""
    score = {"rrf": _rrf, "weighted": _weighted}.get(method, _relative)
    words, meanings = score(lexical, 1 - alpha), score(dense, alpha)
    places = ({hit.id: n for n, hit in enumerate(found, 1)} for found in (lexical, dense))
    word_places, meaning_places = places
    documents = {hit.id: hit.document for hit in (*lexical, *dense)}
    fused = [
        Fused(
            chunk,
            document,
            words.get(chunk, 0.0) + meanings.get(chunk, 0.0),
            word_places.get(chunk),
            meaning_places.get(chunk),
        )
        for chunk, document in documents.items()
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.document, hit.id))


def _relative(hits: Sequence[IndexHit], weight: float) -> Mapping[str, float]:
    """Scale each list to 0..1; its worst hit gets 0, which still is a hit."""
    if not hits:
        return {}
    top, bottom = max(h.score for h in hits), min(h.score for h in hits)
    spread = top - bottom
    return {h.id: weight * ((h.score - bottom) / spread if spread else 1.0) for h in hits}


def _rrf(hits: Sequence[IndexHit], _: float) -> Mapping[str, float]:
    """Reciprocal ranks, both lists alike."""
    return {hit.id: 1 / (RRF_K + n) for n, hit in enumerate(hits, 1)}


def _weighted(hits: Sequence[IndexHit], weight: float) -> Mapping[str, float]:
    """Reciprocal ranks, weighted."""
    return {hit.id: weight / (RRF_K + n) for n, hit in enumerate(hits, 1)}
