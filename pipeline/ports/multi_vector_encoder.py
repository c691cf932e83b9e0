"""Vectors per token, for late interaction (ColBERT; Khattab and Zaharia, SIGIR 2020)."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]
"""Tokens × dimensions; each row is a unit vector, and there is at least one."""


class MultiVectorEncoder(Protocol):
    """Encodes texts; a question and a passage of one model are compared by MaxSim. Any text works."""

    model: str
    """Name, version and dimensions of the model: matrices of two are never compared."""
    dimensions: int

    async def passages(self, texts: Sequence[str], *, budget_s: float) -> list[Matrix]:
        """Return one matrix per text, in order. Raises BackendUnavailable when the model does not answer within
        `budget_s` seconds, and ModelFailed when it answers something else."""

    async def query(self, text: str, *, budget_s: float) -> Matrix:
        """Return the matrix of a question; errors as with passages."""

    async def close(self) -> None:
        """Let go of connections; idempotent."""
