"""Learned sparse vectors (SPLADE; Formal and others, SIGIR 2021): weights of a model's own vocabulary for a text."""

from collections.abc import Mapping, Sequence
from typing import Protocol

SparseVector = Mapping[int, float]
"""Token of the model's vocabulary to its weight; finite, tokens that are absent weigh nothing."""


class SparseEncoder(Protocol):
    """Encodes texts; vectors of one model are compared by their dot product. Any text works."""

    model: str
    """Name and version of the model: vectors of two are never compared."""

    async def passages(self, texts: Sequence[str], *, budget_s: float) -> list[SparseVector]:
        """Return one vector per text, in order. Raises BackendUnavailable when the model does not answer within
        `budget_s` seconds, and ModelFailed when it answers something else."""

    async def query(self, text: str, *, budget_s: float) -> SparseVector:
        """Return the vector of a question; errors as with passages."""

    async def close(self) -> None:
        """Let go of connections; idempotent."""
