"""No embedding model on this platform or by choice: dense search is off, and everything that shows it says so."""

from collections.abc import Sequence

from pipeline.errors import BackendUnavailable
from schemas.change_event import Lane


class NoEmbedder:
    """Implements `pipeline.ports.models.Embedder` with an empty `model`: callers ask for no vectors then."""

    model = ""
    dimensions = 0

    def __init__(self, reason: str = "no embedding model is configured") -> None:
        self.reason = reason
        """Why, for `status` and `doctor`."""

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        """Raise BackendUnavailable, except for no texts."""
        if texts:
            raise BackendUnavailable(f"dense search is off: {self.reason}")
        return []

    async def query(self, text: str) -> bytes:
        """Raise BackendUnavailable."""
        raise BackendUnavailable(f"dense search is off: {self.reason}")

    async def close(self) -> None:
        """Do nothing."""
