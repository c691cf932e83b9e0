"""Cross-encoders behind HTTP, in the two shapes that servers speak.

`http`: `POST /v1/rerank` {model, query, documents, top_n} → {results: [{index, relevance_score}]}, as Jina, Cohere
(whose address ends with `/v2`), vLLM and LocalAI take it. `tei`: `POST /rerank` {query, texts} → [{index, score}], of
Hugging Face's Text Embeddings Inference.
"""

import asyncio
import math
from collections.abc import Sequence

import msgspec

from pipeline.backends.model_server import ModelServer, decoded, sendable
from pipeline.further_lists import UNMEASURED
from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.text.embeddable import passage_text

QUESTION_CHARACTERS = 2_000
PASSAGE_CHARACTERS = 4_000
"""Of title, headings and text together; more would be cut by the model anyway."""
TEI_BATCH = 32
"""Texts in one request: TEI's own limit unless it was started with another (`--max-client-batch-size`)."""


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Results(msgspec.Struct):
    results: list[_Result]


class _Score(msgspec.Struct):
    index: int
    score: float


class HttpReranker:
    """Implements `pipeline.ports.reranker.Reranker` in the shape `http`. All passages go in one request."""

    note = UNMEASURED

    def __init__(self, server: ModelServer, model: str) -> None:
        self._server, self.model = server, model

    async def rerank(
        self, question: RerankQuestion, passages: Sequence[RerankPassage], *, budget_s: float
    ) -> list[float]:
        """See Reranker.rerank."""
        if not passages:
            return []
        documents = [shown(passage) for passage in passages]
        query = sendable(question.text, QUESTION_CHARACTERS)
        body = {"model": self.model, "query": query, "documents": documents, "top_n": len(documents)}
        answer = await self._server.post(self._server.versioned("/v1") + "/rerank", body, budget_s)
        found = [(one.index, one.relevance_score) for one in decoded(self._server, answer, _Results).results]
        return in_order(self._server, found, len(passages))

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()


class TeiReranker:
    """Implements `pipeline.ports.reranker.Reranker` in the shape `tei`. The server has one model; ours is its name."""

    note = UNMEASURED

    def __init__(self, server: ModelServer, model: str = "", batch: int = TEI_BATCH) -> None:
        self._server, self._batch = server, batch
        self.model = model or "tei"

    async def rerank(
        self, question: RerankQuestion, passages: Sequence[RerankPassage], *, budget_s: float
    ) -> list[float]:
        """See Reranker.rerank. Passages are scored one by one there, so that batches compare."""
        parts = [passages[at : at + self._batch] for at in range(0, len(passages), self._batch)]
        scored = await asyncio.gather(*(self._part(question, part, budget_s) for part in parts))
        return [score for part in scored for score in part]

    async def _part(self, question: RerankQuestion, passages: Sequence[RerankPassage], budget_s: float) -> list[float]:
        texts = [shown(passage) for passage in passages]
        body = {"query": sendable(question.text, QUESTION_CHARACTERS), "texts": texts, "truncate": True}
        answer = await self._server.post("/rerank", body, budget_s)
        found = [(one.index, one.score) for one in decoded(self._server, answer, list[_Score])]
        return in_order(self._server, found, len(passages))

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()


def shown(passage: RerankPassage, characters: int = PASSAGE_CHARACTERS) -> str:
    """Return what a model is shown of a passage."""
    return sendable(passage_text(passage.title, passage.headings, passage.text), characters)


def in_order(server: ModelServer, found: Sequence[tuple[int, float]], expected: int) -> list[float]:
    """Return the scores by index. Raises ModelFailed unless each of the `expected` has exactly one, finite."""
    scores = dict(found)
    if len(found) != expected or scores.keys() != set(range(expected)):
        raise server.failed(f"it gave {len(found)} scores where each of {expected} passages must have one")
    if not all(math.isfinite(score) for score in scores.values()):
        raise server.failed("it gave a score that is no number")
    return [scores[n] for n in range(expected)]
