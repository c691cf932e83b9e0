"""Rerankers behind HTTP, from the settings of a start to what `POST /v1/search` answers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from ops.checkup import Finding, checkup
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import client_of
from tests.api.plant import report
from tests.contracts.model_http import Answer, ModelHttp, completion, slow

KINDS = ("http", "tei", "llm")
QUERY = "給水ポンプの軸受を交換した日"
BEST = "plant/reports/P33"


@pytest.fixture
def server() -> Any:
    running = ModelHttp()
    yield running
    running.stop()


@asynccontextmanager
async def started(
    settings: Settings, server: ModelHttp, kind: str, budget_s: float
) -> AsyncIterator[httpx.AsyncClient]:
    """A running pipeline with forty reports, one of which shares the most bigrams with the question."""
    more = {"reranker": kind, "reranker_url": server.url, "reranker_model": "m", "reranker_budget": budget_s}
    given = Settings.model_validate({**settings.model_dump(), **more, "reranker_key": "sk-s3cret"})
    async with open_embedded(given) as runtime, client_of(runtime, given) as client:
        texts = [f"給水ポンプの点検。番号{n}。" * (1 + n % 5) for n in range(40)]
        texts[33] = "番号三十三。" * 30 + QUERY + "を記す。"
        response = await client.post(
            "/v1/events?wait=applied&timeout=30s", json=[report(f"P{n}", text) for n, text in enumerate(texts)]
        )
        assert response.status_code == 200
        yield client


async def search(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    response = await client.post("/v1/search", json={"query": QUERY, "top_k": 100, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [hit["chunk_id"] for hit in found["hits"]]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_model_behind_http_orders(settings: Settings, server: ModelHttp, kind: str) -> None:
    async with started(settings, server, kind, 10.0) as client:
        found, again = await search(client), await search(client)
        assert found["hits"][0]["document"]["key"] == BEST and found["warnings"] == []
        assert ids(found) == ids(again) and sorted(ids(found)) == sorted(ids(await search(client, rerank=False)))
        scores = [hit["parts"]["rerank"] for hit in found["hits"]]
        assert scores == sorted(scores, reverse=True)
        told = (await search(client, explain=True))["explanation"]["reranker"]
        assert told["note"] == "adapter only, quality unmeasured" and "weights" not in told


def broken(status: int, body: Any) -> Answer:
    return lambda path, request: (status, body)


@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_the_server_does_the_first_order_stands(
    settings: Settings, server: ModelHttp, kind: str
) -> None:
    """The budget is kept, nothing is lost, the asker is told why and learns no secret."""
    talked_into = completion({"grades": [{"n": 1, "grade": 3}, {"n": 99, "grade": 3}]})
    async with started(settings, server, kind, 0.5) as client:
        first = await search(client, rerank=False)
        misbehaving: list[Callable[..., Any]] = [
            slow,
            broken(500, {"error": "sk-s3cret"}),
            broken(401, {"error": "sk-s3cret"}),
            broken(200, b"{not json"),
            broken(200, {"results": []}),
            broken(200, b'[{"index": 0, "score": NaN}]'),
            broken(200, b" " * (5 << 20)),
            broken(200, talked_into),
        ]
        for answer in misbehaving:
            server.answer = answer
            found = await search(client)
            assert ids(found) == ids(first)
            assert len(found["warnings"]) == 1 and "the order of the first stage" in found["warnings"][0]
            assert "s3cret" not in str(found) and found["timings_ms"]["rerank"] < 1_000


@pytest.mark.parametrize("kind", KINDS)
async def test_the_checkup_says_that_nobody_measured_it(settings: Settings, kind: str) -> None:
    more = {"reranker": kind, "reranker_url": "http://127.0.0.1:9", "reranker_model": "m"}
    found = await findings(Settings.model_validate({**settings.model_dump(), **more}))
    assert found["reranker"].state == "ok" and "adapter only, quality unmeasured" in found["reranker"].found
    bad = Settings.model_validate({**settings.model_dump(), **more, "reranker_url": "nowhere"})
    wrong = (await findings(bad))["reranker"]
    assert wrong.state == "failure" and "http(s)" in msgspec.json.encode(wrong).decode()


async def findings(settings: Settings) -> dict[str, Finding]:
    return {finding.name: finding async for finding in checkup(settings, models=False)}
