"""Further lists of a search: learned sparse and late interaction, over the candidates of the other retrievers.

Adapters only: no model was measured behind them, so they weigh nothing unless someone configures it. What was encoded
is cached by content and model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from pipeline.passage_vectors import content_hash
from pipeline.ports.cache import Cache
from pipeline.ports.multi_vector_encoder import Matrix, MultiVectorEncoder
from pipeline.ports.sparse_encoder import SparseEncoder, SparseVector
from pipeline.steps.late_interaction import dot, max_sim, pack_matrix, pack_sparse, unpack_matrix, unpack_sparse

UNMEASURED = "adapter only, quality unmeasured"
_BATCH = 16
"""Passages encoded and cached together: what was done when the time ran out is there the next time."""
Encoding = TypeVar("Encoding")


class _Encodings(Generic[Encoding]):
    """A cache of passages' encodings in front of an encoder."""

    def __init__(
        self,
        cache: Cache,
        kind: str,
        pack: Callable[[Encoding], bytes],
        unpack: Callable[[bytes], Encoding],
    ) -> None:
        self._cache, self._kind, self._pack, self._unpack = cache, kind, pack, unpack

    async def of(
        self, texts: Sequence[str], encode: Callable[[Sequence[str]], Awaitable[list[Encoding]]]
    ) -> list[Encoding]:
        """Return each text's encoding as the cache holds it, so that the first time scores like the second."""
        by_key = {content_hash(text): text for text in texts}
        packed = await self._cache.get(self._kind, list(by_key))
        missing = [key for key in by_key if key not in packed]
        for at in range(0, len(missing), _BATCH):
            keys = missing[at : at + _BATCH]
            found = await encode([by_key[key] for key in keys])
            fresh = {key: self._pack(one) for key, one in zip(keys, found, strict=True)}
            await self._cache.put(self._kind, fresh)
            packed |= fresh
        unpacked = await asyncio.to_thread(lambda: {key: self._unpack(packed[key]) for key in by_key})
        return [unpacked[content_hash(text)] for text in texts]


class SparseScorer:
    """Dot products of learned sparse vectors."""

    def __init__(self, encoder: SparseEncoder, cache: Cache) -> None:
        self._encoder, self.model = encoder, encoder.model
        self._known: _Encodings[SparseVector] = _Encodings(cache, f"sparse:{self.model}", pack_sparse, unpack_sparse)

    async def scores(self, question: str, passages: Sequence[str], *, budget_s: float) -> list[float]:
        """See Scorer.scores."""
        asked, known = await asyncio.gather(
            self._encoder.query(question, budget_s=budget_s),
            self._known.of(passages, lambda texts: self._encoder.passages(texts, budget_s=budget_s)),
        )
        return [dot(asked, one) for one in known]

    async def close(self) -> None:
        """Close the encoder."""
        await self._encoder.close()


class LateScorer:
    """MaxSim of vectors per token."""

    def __init__(self, encoder: MultiVectorEncoder, cache: Cache) -> None:
        self._encoder, self.model = encoder, encoder.model
        self._known: _Encodings[Matrix] = _Encodings(cache, f"matrix:{self.model}", pack_matrix, unpack_matrix)

    async def scores(self, question: str, passages: Sequence[str], *, budget_s: float) -> list[float]:
        """See Scorer.scores."""
        asked, known = await asyncio.gather(
            self._encoder.query(question, budget_s=budget_s),
            self._known.of(passages, lambda texts: self._encoder.passages(texts, budget_s=budget_s)),
        )
        return await asyncio.to_thread(max_sim, asked, known)

    async def close(self) -> None:
        """Close the encoder."""
        await self._encoder.close()
