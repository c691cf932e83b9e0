"""The second stage of a search, through `POST /v1/search` and `POST /v1/query` of a running embedded pipeline."""

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import BackendUnavailable
from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import Load, client_of
from tests.api.plant import report

Scores = Callable[[RerankQuestion, Sequence[RerankPassage]], list[float]]


class Given:
    """A reranker of which a test decides what it answers, and after how long."""

    model, note = "given", ""

    def __init__(self, scores: Scores, after_s: float = 0.0) -> None:
        self.scores, self.after_s, self.asked = scores, after_s, 0

    async def rerank(
        self, question: RerankQuestion, passages: Sequence[RerankPassage], *, budget_s: float
    ) -> list[float]:
        self.asked += 1
        await asyncio.sleep(self.after_s)
        return self.scores(question, passages)

    async def close(self) -> None:
        """Nothing is open."""


def backwards(question: RerankQuestion, passages: Sequence[RerankPassage]) -> list[float]:
    return [float(n) for n in range(len(passages))]


def away(question: RerankQuestion, passages: Sequence[RerankPassage]) -> list[float]:
    raise BackendUnavailable("reranker http://127.0.0.1:9: connection refused; check that it runs")


async def search(client: httpx.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    response = await client.post("/v1/search", json={"query": query, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [hit["chunk_id"] for hit in found["hits"]]


@pytest.fixture(autouse=True)
async def pumps(load: Load, runtime: EmbeddedRuntime) -> None:
    """Seventy reports of which each holds the words of the question; no reranker but the test's own."""
    runtime.reranker = None
    await load([report(f"P{n}", f"給水ポンプの点検。番号{n}。{'油を差した。' * (n % 7)}") for n in range(70)])


async def test_the_model_orders_and_nothing_is_lost(client: httpx.AsyncClient, runtime: EmbeddedRuntime) -> None:
    first = await search(client, "給水ポンプの点検", top_k=60)
    runtime.reranker = Given(backwards)
    second = await search(client, "給水ポンプの点検", top_k=60)
    assert ids(second)[:50] == ids(first)[:50][::-1] and ids(second)[50:] == ids(first)[50:]
    assert second["total"] == first["total"] and second["warnings"] == []
    assert [hit["parts"]["rerank"] for hit in second["hits"]][:2] == [49.0, 48.0]
    assert second["hits"][55]["parts"]["rerank"] is None
    scores = [hit["score"] for hit in second["hits"]]
    assert scores == sorted(scores, reverse=True) == [hit["score"] for hit in first["hits"]]


async def test_pages_of_a_reranked_list_join(client: httpx.AsyncClient, runtime: EmbeddedRuntime) -> None:
    runtime.reranker = Given(backwards)
    whole = await search(client, "給水ポンプの点検", top_k=60)
    pages = [await search(client, "給水ポンプの点検", top_k=20, offset=offset) for offset in (0, 20, 40)]
    assert [one for page in pages for one in ids(page)] == ids(whole)
    first = await search(client, "給水ポンプの点検", top_k=20, cursor="")
    second = await search(client, "給水ポンプの点検", top_k=20, cursor=first["next"])
    assert ids(first) + ids(second) == ids(whole)[:40]
    assert second["hits"][0]["parts"]["rerank"] == whole["hits"][20]["parts"]["rerank"]


async def test_ties_keep_the_first_order_and_exact_identifiers_stay_first(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, load: Load
) -> None:
    await load([report("F1", "給水ポンプ WR-12-6F の点検。")])
    first = await search(client, "WR-12-6F 給水ポンプの点検")
    runtime.reranker = Given(lambda question, passages: [0.5] * len(passages))
    assert ids(await search(client, "WR-12-6F 給水ポンプの点検")) == ids(first)
    runtime.reranker = Given(backwards)
    assert (await search(client, "WR-12-6F 給水ポンプの点検"))["hits"][0]["document"]["key"] == "plant/reports/F1"


async def test_the_model_sees_the_passage_as_it_is_indexed(client: httpx.AsyncClient, runtime: EmbeddedRuntime) -> None:
    seen: list[RerankPassage] = []
    runtime.reranker = Given(lambda question, passages: seen.extend(passages) or [0.0] * len(passages))  # type: ignore[func-returns-value]
    await search(client, "給水ポンプの点検")
    assert len(seen) == 50 and all("給水ポンプ" in one.text and one.title and one.terms for one in seen)
    known = {"score", "bm25", "bm25_rank", "dense", "dense_rank", "sentence"}
    assert all({"score"} < set(one.signals) <= known for one in seen)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (Given(away), "connection refused"),
        (Given(backwards, after_s=5.0), "did not answer within 0.2 s"),
        (Given(lambda question, passages: [1.0]), "1 scores for 50"),
        (Given(lambda question, passages: [math.nan] * len(passages)), "no number"),
    ],
)
async def test_a_failing_model_leaves_the_first_order_and_says_so(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, broken: Given, said: str
) -> None:
    first = await search(client, "給水ポンプの点検", top_k=60)
    runtime.reranker, runtime.rerank_budget_s = broken, 0.2
    second = await search(client, "給水ポンプの点検", top_k=60)
    assert ids(second) == ids(first)
    assert len(second["warnings"]) == 1 and said in second["warnings"][0] and "first stage" in second["warnings"][0]
    assert second["timings_ms"]["rerank"] < 1_000
    answered = (await client.post("/v1/query", json={"question": "給水ポンプの点検は?", "source": "vector"})).json()
    assert [said in one for one in answered["warnings"]] == [True]


async def test_who_does_not_want_it_does_not_wait_for_it(client: httpx.AsyncClient, runtime: EmbeddedRuntime) -> None:
    first = await search(client, "給水ポンプの点検")
    model = runtime.reranker = Given(backwards)
    assert ids(await search(client, "給水ポンプの点検", rerank=False)) == ids(first)
    await search(client, "給水ポンプの点検", offset=50)
    assert model.asked == 0


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_second_stage_is_told_how_near_a_passage_s_sentences_are(
    tmp_path: Path, settings: Settings, wanted: bool
) -> None:
    seen: dict[str, dict[str, float]] = {}

    def note(question: RerankQuestion, passages: Sequence[RerankPassage]) -> list[float]:
        seen.update({one.title: dict(one.signals) for one in passages})
        return [0.0 for _ in passages]

    own = settings.model_copy(update={"data": tmp_path / "own", "sentence_vectors": wanted})
    async with open_embedded(own) as runtime, client_of(runtime, own) as client:
        runtime.reranker = Given(note)
        given = [report("S-1", "油温が上がった。冷却水の弁を開けた。"), report("S-2", "冷却水の弁を開けた。")]
        response = await client.post("/v1/events?wait=applied&timeout=30s", json=given)
        assert response.status_code == 200, response.text
        async with asyncio.timeout(20):
            while (status := (await client.get("/v1/status")).json())["counts"]["unrefined"]:  # noqa: ASYNC110 - an answer
                await asyncio.sleep(0.02)
        await search(client, "冷却水の弁")
    built = next(g["versions"] for g in status["generations"] if g["state"] == "live")
    assert ("sentence_vectors" in built) == wanted, "what was built without them is not outdated"
    assert "sentence" not in seen["報告 S-2"], "one sentence is the passage"
    assert ("sentence" in seen["報告 S-1"]) == wanted
    assert not wanted or seen["報告 S-1"]["sentence"] > seen["報告 S-1"]["dense"], "its second sentence is the nearest"
