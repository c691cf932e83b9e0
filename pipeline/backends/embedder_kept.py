"""Vectors of the questions asked last, kept: the next page of a list and the same question again need no model."""

from collections import OrderedDict
from collections.abc import Sequence

from pipeline.ports.models import Embedder
from schemas.change_event import Lane

KEPT = 2_000
"""Questions; with 384 dimensions and long questions about 8 MB."""


class KeptQuestions:
    """Implements `pipeline.ports.models.Embedder` over another one, whose vectors depend on the text alone.

    A failure is not kept. Passages are not: they have the cache that survives the process.
    """

    def __init__(self, embedder: Embedder, most: int = KEPT) -> None:
        """Keep up to `most` questions, the least recently asked goes first."""
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._embedder, self._most = embedder, most
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        """Ask the embedder."""
        return await self._embedder.passages(texts, lane=lane)

    async def query(self, text: str) -> bytes:
        """Return the vector of a question; asks the embedder only where it is not kept."""
        vector = self._kept.get(text)
        if vector is None:
            vector = self._kept[text] = await self._embedder.query(text)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(text)
        return vector

    async def close(self) -> None:
        """Close the embedder."""
        await self._embedder.close()
