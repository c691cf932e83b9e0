"""The reranker: the second stage of a search, which looks at the question and each candidate together."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from schemas.document import Variant


class RerankQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, as typed and as analyzed. A model over HTTP reads the text alone."""

    text: str
    terms: tuple[str, ...] = ()
    """Index terms, each once, in reading order."""
    identifiers: tuple[str, ...] = ()
    bigrams: tuple[str, ...] = ()
    """Pairs of characters, in reading order."""
    variants: tuple[Variant, ...] = ()
    """The same question said by synonyms."""
    query_type: str = ""
    alpha: float | None = None
    """The weight that the asker gives to the dense score, 0 to 1; None: the reranker's own."""


class RerankPassage(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that the first stage found. A model over HTTP reads title, headings and text alone."""

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    """Index terms of the text, in reading order."""
    title_terms: tuple[str, ...] = ()
    """Of title and headings."""
    bigrams: Sequence[str] = ()
    """Pairs of characters of the text: asking `in` and `count` for a few is quick, walking all is not."""
    signals: Mapping[str, float] = msgspec.field(default_factory=dict)
    """What the first stage knows by name: `score`, and score and rank in each list that held it
    (`bm25`, `bm25_rank`, `dense`, `dense_rank`); `sentence`: the cosine of its nearest sentence."""


class Reranker(Protocol):
    """Scores passages against a question. The caller orders, and keeps the first stage's order where this fails."""

    model: str
    """Name and version of the model."""
    note: str
    """What is to be said wherever the model is named, such as that nobody measured it; mostly empty."""

    async def rerank(
        self, question: RerankQuestion, passages: Sequence[RerankPassage], *, budget_s: float
    ) -> list[float]:
        """Return one finite score per passage, in the passages' order; higher is better, the scale is the model's own.

        No passages, no scores, and nobody is asked. Raises BackendUnavailable when the model does not answer within
        `budget_s` seconds, and ModelFailed when it answers something else than these scores.
        """

    async def close(self) -> None:
        """Let go of connections; idempotent."""
