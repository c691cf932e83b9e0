"""A stand-in for the embedding model: vectors made from hashes of bigrams, so that like texts are near.

For tests of faults, sizes and scale, behind the same port; it says nothing about quality.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from pipeline.backends.stub_faults import StubFaults
from pipeline.text.normalize import fold
from pipeline.text.terms import bigrams
from schemas.change_event import Lane

_DIMENSIONS = 384


class StubEmbedder:
    """Implements `pipeline.ports.models.Embedder`; about 10,000 passages a second."""

    model = "stub-embedder-1"
    dimensions = _DIMENSIONS

    def __init__(self, faults: StubFaults | None = None) -> None:
        self.faults = faults if faults is not None else StubFaults()
        self._places: dict[str, int] = {}

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        """Return one unit vector per text, the same for the same text on every machine."""
        await self.faults.before(texts)
        return [self._embed(text) for text in texts]

    async def query(self, text: str) -> bytes:
        """Return the vector that a passage of this text has."""
        await self.faults.before([text])
        return self._embed(text)

    async def close(self) -> None:
        """Do nothing."""

    def _embed(self, text: str) -> bytes:
        vector = np.zeros(_DIMENSIONS, dtype="<f4")
        vector[0] = 0.01  # an empty text has a direction too
        places = [self._place(pair) for pair in bigrams(fold(text)[0])]
        np.add.at(vector, places, np.float32(1.0))
        return bytes((vector / np.linalg.norm(vector)).astype("<f4").tobytes())

    def _place(self, pair: str) -> int:
        place = self._places.get(pair)
        if place is None:
            digest = hashlib.blake2b(pair.encode(), digest_size=4).digest()
            place = self._places[pair] = 1 + int.from_bytes(digest, "big") % (_DIMENSIONS - 1)
        return place
