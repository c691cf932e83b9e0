"""The cache of model work."""

from collections.abc import Sequence
from typing import Protocol


class Cache(Protocol):
    """Analyses and embeddings by content hash and version; losing it costs time, never truth."""

    async def get(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        """Return what is there; missing keys are absent."""

    async def put(self, kind: str, items: dict[str, bytes]) -> None:
        """Keep items; existing keys are overwritten."""
