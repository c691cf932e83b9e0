"""MaxSim over the candidates, and how matrices and sparse vectors are kept in a cache."""

from collections.abc import Sequence

import msgspec
import numpy as np

from pipeline.ports.multi_vector_encoder import Matrix
from pipeline.ports.sparse_encoder import SparseVector

_DECIMALS = 5
"""What a product of matrices gives beyond these depends on where a passage stands in it: equal ones would not tie."""


def max_sim(query: Matrix, passages: Sequence[Matrix]) -> list[float]:
    """Return for each passage the mean over the question's tokens of the best cosine with one of its tokens, -1 to 1.

    ColBERT's sum divided by the number of tokens: the same order, and a scale that does not depend on the question.
    """
    if not passages:
        return []
    starts = np.cumsum([0, *(len(passage) for passage in passages[:-1])])
    cosines = np.concatenate(passages) @ query.T
    means = np.maximum.reduceat(cosines, starts, axis=0).mean(axis=1)
    return [round(float(score), _DECIMALS) for score in means]


def dot(query: SparseVector, passage: SparseVector) -> float:
    """Return the dot product."""
    return float(sum(weight * passage[token] for token, weight in query.items() if token in passage))


def pack_matrix(matrix: Matrix) -> bytes:
    """Return rows as int8, 1/127 of the largest of each row, with that scale: a quarter of float32."""
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scaled = np.rint(matrix / np.where(largest > 0, largest, 1) * 127).astype(np.int8)
    return msgspec.msgpack.encode((matrix.shape[1], largest.astype("<f2").tobytes(), scaled.tobytes()))


def unpack_matrix(packed: bytes) -> Matrix:
    """Return what `pack_matrix` was given; components within 1 % of the largest of their row."""
    dimensions, scales, rows = msgspec.msgpack.decode(packed, type=tuple[int, bytes, bytes])
    scale = np.frombuffer(scales, "<f2").astype(np.float32)[:, None] / np.float32(127)
    return np.frombuffer(rows, np.int8).reshape(-1, dimensions).astype(np.float32) * scale


def pack_sparse(vector: SparseVector) -> bytes:
    """Return a sparse vector as bytes; weights as float32."""
    tokens, weights = np.array(list(vector), "<u4"), np.array(list(vector.values()), "<f4")
    return msgspec.msgpack.encode((tokens.tobytes(), weights.tobytes()))


def unpack_sparse(packed: bytes) -> SparseVector:
    """Return what `pack_sparse` was given."""
    tokens, weights = msgspec.msgpack.decode(packed, type=tuple[bytes, bytes])
    return dict(zip(np.frombuffer(tokens, "<u4").tolist(), np.frombuffer(weights, "<f4").tolist(), strict=True))
