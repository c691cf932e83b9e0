"""Rankings of documents: from `POST /v1/search`, or from any engine that is compared with it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import httpx
import msgspec

from ops.connection import Connection
from ops.evaluation.golden import GoldenQuestion

TOP_K = 50
"""Passages asked for: enough that ten and more documents are among them."""
AT_ONCE = 4
"""Questions under way at a time."""


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The documents found for a question."""

    documents: tuple[str, ...]
    """Document keys, best first, each once."""
    query_type: str = ""
    """What the product took the question for; empty for other engines."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    """From the question to the ranking."""


class Ranker(Protocol):
    """Something that ranks documents for a question."""

    async def rank(self, question: GoldenQuestion) -> Sequence[str] | Ranking:
        """Return document keys, best first; a key's first place counts."""
        ...


class SearchRanker:
    """The product: `POST /v1/search`, with the defaults of the API where the configuration says nothing."""

    def __init__(
        self, connection: Connection, body: Mapping[str, Any], top_k: int = TOP_K, groups: str | None = None
    ) -> None:
        """`body`: members of the request; `groups`: ask as a member of these."""
        self._connection, self._body = connection, {"top_k": top_k} | dict(body)
        self._headers = httpx.Headers({} if groups is None else {"x-shinsen-groups": groups}, encoding="utf-8")

    async def rank(self, question: GoldenQuestion) -> Ranking:
        """Search; a document stands where its best passage does."""
        body = {"query": question.question} | self._body
        answer = await self._connection.post("/v1/search", json=body, headers=self._headers)
        return Ranking(
            documents=tuple(dict.fromkeys(hit["document"]["key"] for hit in answer["hits"])),
            query_type=str(answer["query_type"]),
            warnings=tuple(answer.get("warnings", ())),
        )


async def rank_all(
    ranker: Ranker,
    questions: Sequence[GoldenQuestion],
    *,
    at_once: int = AT_ONCE,
    progress: Callable[[], object] = lambda: None,
) -> list[Ranking]:
    """Rank for every question, `at_once` at a time, and return the rankings in the order of the questions.

    Raises what the ranker raises.
    """
    rankings: list[Ranking | None] = [None] * len(questions)
    waiting = iter(enumerate(questions))

    async def work() -> None:
        for number, question in waiting:
            rankings[number] = await _ranked(ranker.rank(question))
            progress()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(questions))):
                group.create_task(work())
    except ExceptionGroup as failed:  # the first to fail stopped the others
        raise failed.exceptions[0] from failed
    return [ranking for ranking in rankings if ranking is not None]


async def _ranked(ranking: Awaitable[Sequence[str] | Ranking]) -> Ranking:
    started = time.perf_counter()
    found = await ranking
    if not isinstance(found, Ranking):
        found = Ranking(documents=tuple(dict.fromkeys(found)))
    return msgspec.structs.replace(found, seconds=time.perf_counter() - started)
