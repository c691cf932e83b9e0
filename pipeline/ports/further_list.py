"""Further lists of a search, over the candidates of the other retrievers."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Scorer(Protocol):
    """Scores passages against a question; errors as those of its encoder."""

    model: str

    async def scores(self, question: str, passages: Sequence[str], *, budget_s: float) -> list[float]:
        """Return one finite score per passage, higher is better."""

    async def close(self) -> None:
        """Let go of the encoder; idempotent."""


class FurtherList(msgspec.Struct, frozen=True, kw_only=True):
    """One further list."""

    name: str
    """`sparse` or `late`."""
    weight: float
    """Share of the fused score, above 0; the lists before share the rest."""
    scorer: Scorer
