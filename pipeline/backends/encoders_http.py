"""Sparse and multi-vector encoders behind HTTP.

Sparse: `POST /embed_sparse` {inputs, truncate} → [[{index, value}]], of Hugging Face's Text Embeddings Inference (with
`--pooling splade`). Multi-vector: `POST /v1/multi-vector` {model, input, input_type: query | document, dimensions,
embedding_type} → {data: [{index, embeddings: [[...]]}]}, of Jina's ColBERT models.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from pipeline.backends.model_server import ModelServer, decoded, sendable
from pipeline.ports.multi_vector_encoder import Matrix
from pipeline.ports.sparse_encoder import SparseVector

BATCH = 16
"""Texts in one request."""
CHARACTERS = 4_000
MOST_TOKENS = 512
"""Rows of a matrix and weights of a sparse vector that are kept: the first, or the largest."""
MOST_BYTES = 128 << 20
"""Of one answer: 16 matrices of 512 × 1,024 numbers as JSON."""

Encoded = TypeVar("Encoded")


class _Weight(msgspec.Struct):
    index: int
    value: float


class _Embedded(msgspec.Struct):
    embeddings: list[list[float]]
    index: int | None = None


class _Data(msgspec.Struct):
    data: list[_Embedded]


class TeiSparseEncoder:
    """Implements `pipeline.ports.sparse_encoder.SparseEncoder`. Questions and passages are encoded alike."""

    def __init__(self, server: ModelServer, model: str) -> None:
        self._server, self.model = server, model

    async def passages(self, texts: Sequence[str], *, budget_s: float) -> list[SparseVector]:
        """See SparseEncoder.passages."""
        return await _in_batches(texts, lambda part: self._encode(part, budget_s))

    async def query(self, text: str, *, budget_s: float) -> SparseVector:
        """See SparseEncoder.query."""
        return (await self._encode([text], budget_s))[0]

    async def _encode(self, texts: Sequence[str], budget_s: float) -> list[SparseVector]:
        body = {"inputs": [sendable(text, CHARACTERS) for text in texts], "truncate": True}
        rows = decoded(self._server, await self._server.post("/embed_sparse", body, budget_s), list[list[_Weight]])
        if len(rows) != len(texts):
            raise self._server.failed(f"it gave {len(rows)} vectors for {len(texts)} texts")
        return [self._vector(row) for row in rows]

    def _vector(self, row: Sequence[_Weight]) -> SparseVector:
        if not all(math.isfinite(one.value) and 0 <= one.index < 1 << 31 for one in row):
            raise self._server.failed("it gave a weight that is no number, or no token")
        largest = sorted(row, key=lambda one: (-abs(one.value), one.index))[:MOST_TOKENS]
        return {one.index: one.value for one in largest}

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()


class JinaMultiVectorEncoder:
    """Implements `pipeline.ports.multi_vector_encoder.MultiVectorEncoder`."""

    def __init__(self, server: ModelServer, model: str, dimensions: int) -> None:
        self._server, self._name, self.dimensions = server, model, dimensions
        self.model = f"{model}@{dimensions}"

    async def passages(self, texts: Sequence[str], *, budget_s: float) -> list[Matrix]:
        """See MultiVectorEncoder.passages."""
        return await _in_batches(texts, lambda part: self._encode(part, "document", budget_s))

    async def query(self, text: str, *, budget_s: float) -> Matrix:
        """See MultiVectorEncoder.query."""
        return (await self._encode([text], "query", budget_s))[0]

    async def _encode(self, texts: Sequence[str], kind: str, budget_s: float) -> list[Matrix]:
        body = {
            "model": self._name,
            "input": [sendable(text, CHARACTERS) for text in texts],
            "input_type": kind,
            "dimensions": self.dimensions,
            "embedding_type": "float",
        }
        answer = await self._server.post(self._server.versioned("/v1") + "/multi-vector", body, budget_s)
        return await asyncio.to_thread(self._matrices, answer, len(texts))

    def _matrices(self, answer: bytes, expected: int) -> list[Matrix]:
        data = decoded(self._server, answer, _Data).data
        places = [n if one.index is None else one.index for n, one in enumerate(data)]
        if sorted(places) != list(range(expected)):
            raise self._server.failed(f"it gave {len(data)} matrices where each of {expected} texts must have one")
        ordered = sorted(zip(places, data, strict=True), key=lambda pair: pair[0])
        return [self._matrix(one.embeddings) for _, one in ordered]

    def _matrix(self, rows: Any) -> Matrix:
        if not rows or any(len(row) != self.dimensions for row in rows):
            raise self._server.failed(f"it gave no rows, or rows that have not {self.dimensions} dimensions")
        found = np.asarray(rows[:MOST_TOKENS], dtype=np.float64)
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._server.failed("it gave a vector without direction")
        unit: Matrix = (found / lengths).astype(np.float32)
        return unit

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()


async def _in_batches(
    texts: Sequence[str], encode: Callable[[Sequence[str]], Awaitable[list[Encoded]]]
) -> list[Encoded]:
    parts = await asyncio.gather(*(encode(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)))
    return [one for part in parts for one in part]
