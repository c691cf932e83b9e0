"""Learned sparse and late interaction, from the settings of a start to what `POST /v1/search` answers."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from ops.checkup import checkup
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import client_of
from tests.api.plant import report
from tests.contracts.model_http import Answer, ModelHttp, slow

QUERY = "給水ポンプの軸受を交換した日"
BEST = "plant/reports/P33"


@pytest.fixture
def server() -> Iterator[ModelHttp]:
    running = ModelHttp()
    yield running
    running.stop()


def with_lists(settings: Settings, server: ModelHttp, budget_s: float, **weights: float) -> Settings:
    more: dict[str, Any] = {"further_budget": budget_s, "late_dimensions": 16}
    for name in ("sparse", "late"):
        more |= {f"{name}_url": server.url, f"{name}_model": "m", f"{name}_weight": weights.get(name, 0.0)}
    return Settings.model_validate({**settings.model_dump(), **more})


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A running pipeline with forty reports, one of which shares the most bigrams with the question."""
    async with open_embedded(settings) as runtime, client_of(runtime, settings) as client:
        texts = [f"給水ポンプの軸受を見た。番号{n}。" * (1 + n % 5) for n in range(40)]
        texts[33] = "番号三十三。" * 30 + QUERY + "を記す。"
        events = [report(f"P{n}", text) for n, text in enumerate(texts)]
        response = await client.post("/v1/events?wait=applied&timeout=30s", json=events)
        assert response.status_code == 200
        yield client


async def search(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    response = await client.post("/v1/search", json={"query": QUERY, "top_k": 100, "explain": True, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [hit["chunk_id"] for hit in found["hits"]]


async def test_without_a_weight_nobody_is_asked(settings: Settings, server: ModelHttp) -> None:
    async with started(with_lists(settings, server, 10.0)) as client:
        found = await search(client)
    assert server.asked == [] and found["explanation"]["further_lists"] == []
    assert all(hit["parts"]["lists"] == {} for hit in found["hits"])


@pytest.mark.parametrize("name", ["sparse", "late"])
async def test_a_list_with_a_weight_moves_the_order(settings: Settings, server: ModelHttp, name: str) -> None:
    async with started(with_lists(settings, server, 10.0, **{name: 1.0})) as client:
        found, again = await search(client), await search(client)
        paged = [one for offset in (0, 15, 30) for one in ids(await search(client, top_k=15, offset=offset))]
    assert found["warnings"] == [] and found["hits"][0]["document"]["key"] == BEST
    assert ids(found) == ids(again) and paged == ids(found)[:45]
    told = [hit["parts"]["lists"][name] for hit in found["hits"]]
    assert told == sorted(told, reverse=True) and len(told) == len(set(ids(found)))
    (shown,) = found["explanation"]["further_lists"]
    assert shown["name"] == name and shown["note"] == "adapter only, quality unmeasured"


async def test_a_failing_list_is_left_out_and_the_other_still_counts(settings: Settings, server: ModelHttp) -> None:
    both = with_lists(settings, server, 10.0, sparse=0.5, late=0.5)
    async with started(both) as client:
        answer = server.answer
        server.answer = lambda path, request: (500, {}) if path == "/embed_sparse" else answer(path, request)
        found = await search(client)
    assert len(found["warnings"]) == 1 and "the list sparse was left out" in found["warnings"][0]
    assert all(hit["parts"]["lists"].keys() == {"late"} for hit in found["hits"])


@pytest.mark.parametrize("name", ["sparse", "late"])
async def test_whatever_the_server_does_nothing_is_lost(settings: Settings, server: ModelHttp, name: str) -> None:
    async with started(with_lists(settings, server, 0.5)) as plain:
        first = await search(plain)
    async with started(with_lists(settings, server, 0.5, **{name: 0.9})) as client:
        answers: list[Answer] = [slow, lambda path, request: (401, {}), lambda path, request: (200, b"[NaN]")]
        for answer in answers:
            server.answer = answer
            found = await search(client)
            assert ids(found) == ids(first) and len(found["warnings"]) == 1
            assert f"the list {name} was" in found["warnings"][0]


async def test_the_checkup_says_that_nobody_measured_it(settings: Settings, server: ModelHttp) -> None:
    given = with_lists(settings, server, 1.0, sparse=0.2)
    found = {finding.name: finding async for finding in checkup(given, models=False)}
    assert "sparse (weight 0.2; adapter only, quality unmeasured)" in found["further lists"].found
    too_much = with_lists(settings, server, 1.0, sparse=0.7, late=0.7)
    assert {f.name: f async for f in checkup(too_much, models=False)}["further lists"].state == "failure"
