"""The models: analysis and embedding, off the event loop."""

from collections.abc import Sequence
from typing import Protocol

from schemas.change_event import Lane
from schemas.document import Analysis, AnalyzedText, Token
from schemas.knowledge import Mention


class Analyzer(Protocol):
    """Japanese analysis off the event loop. A pure function of (text, version, dictionary), for any text.

    `lane`: live work goes before bulk work that waits.
    """

    version: str
    """Of models, code and patterns."""
    dictionary: str
    """Version of the user's dictionary; empty without one."""

    async def tokens(self, texts: Sequence[str], *, lane: Lane = "live") -> list[Analysis]:
        """Sudachi level: terms, bigrams, identifiers; `mentions` holds identifiers only. Fast (ms)."""

    async def mentions(self, texts: Sequence[str], *, lane: Lane = "live") -> list[tuple[Mention, ...]]:
        """GiNZA level: candidate mentions besides identifiers. Slow (about 75 ms per 400 characters)."""

    async def questions(self, texts: Sequence[str]) -> list[AnalyzedText]:
        """Return what `tokens` gives for each text, and what a lexical index of such terms is asked. Fast (ms)."""

    async def places(self, texts: Sequence[str]) -> list[list[Token]]:
        """Return the terms that `tokens` gives, each with its span in the text, in reading order. Fast (ms)."""

    async def readings(self, texts: Sequence[str]) -> list[str]:
        """Return how each text is read, in katakana; what is not kanji as it is written. Fast (ms)."""

    async def close(self) -> None:
        """Stop the workers; idempotent."""


class Embedder(Protocol):
    """Dense vectors off the event loop. A pure function of (text, model), for any text.

    `lane`: live work goes before bulk work that waits.
    """

    model: str
    """Name and version of the model; empty when there is none and dense search is off."""
    dimensions: int

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        """Return little-endian float32 unit vectors, one per text. Any text that the steps let pass works."""

    async def query(self, text: str) -> bytes:
        """Return the vector of a question."""

    async def close(self) -> None:
        """Stop the workers; idempotent."""
