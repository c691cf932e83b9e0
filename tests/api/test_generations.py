"""Rebuilds over HTTP on the embedded runtime: under live load, cut off, and who may ask for them."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.ports.generations import ReplayPlan
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import Load, as_groups, client_of
from tests.api.plant import Event, report
from tests.stack.prober import Prober

PROBED = {f"plant/reports/P{n}": f"probe{n}x" for n in range(4)}


def probed(position: int = 1) -> list[Event]:
    return [
        report(document.rpartition("/")[2], f"ここに {word} と書いてある。{position} 回目。", position)
        for document, word in PROBED.items()
    ]


@asynccontextmanager
async def feeding(client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Change the documents that are asked for, all the while."""

    async def feed() -> None:
        for position in itertools.count(2):
            response = await client.post("/v1/events", json=probed(position))
            assert response.status_code == 202, response.text
            await asyncio.sleep(0.05)

    task = asyncio.create_task(feed())
    try:
        yield
    finally:
        assert not task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_rebuild_under_live_load_never_misses_a_document(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, load: Load
) -> None:
    document = next(iter(probed()))
    assert f"{document['source']}/{document['collection']}/{document['key']}" in PROBED
    await load([*probed(), *(report(f"R{n}", f"Q-{n} の本文 {n}。") for n in range(60))])
    async with Prober(client, PROBED).asking() as prober, feeding(client):
        for name, before in (("g2", "g1"), ("g3", "g2")):
            started = await client.post("/v1/replay", json={"into": "new"})
            assert (started.status_code, started.json()["generation"]) == (202, name)
            status = await runtime.replays.finished(name, 60)
            assert (status.phase, status.stuck) == ("complete", "")
            promoted = await client.post(f"/v1/generations/{name}/promote", json={})
            assert promoted.json()["replaced"] == before, promoted.text
            assert (await client.post("/v1/generations/rollback", json={})).json()["generation"] == before
            assert (await client.post(f"/v1/generations/{name}/promote", json={})).json()["generation"] == name
            assert (await client.post("/v1/generations/prune", json={})).json() == {"pruned": [before]}
    assert prober.wrong == [], f"{len(prober.wrong)} of {prober.asked} questions: {prober.wrong[:5]}"
    assert prober.asked > 20
    await runtime.quiet(30)
    counts = await runtime.state.counts("g3")
    ended = sum(number for name, number in counts.items() if name.startswith("outcome."))
    assert ended == (await runtime.status())["events"]["logged"], "each event has one end, whoever applied it"


async def test_a_generation_of_another_model_is_asked_by_words_only(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, load: Load
) -> None:
    await load([report("R1", "軸受を点検した。"), report("R2", "歯車を点検した。")])
    asked = {"query": "軸受を点検", "top_k": 5}
    both = (await client.post("/v1/search", json=asked)).json()
    await runtime.state.set_versions("g1", {"embedder": "another"})
    words = (await client.post("/v1/search", json=asked)).json()
    assert (both["warnings"], len(words["warnings"])) == ([], 1) and "vectors of another" in words["warnings"][0]
    assert any(hit["parts"]["dense"] for hit in both["hits"])
    assert words["hits"] and not any(hit["parts"]["dense"] for hit in words["hits"])
    answer = (await client.post("/v1/query", json={"question": "軸受を点検したか。"})).json()
    assert any("vectors of another" in warning for warning in answer["warnings"])


async def test_one_that_was_cut_off_goes_on_at_the_next_start_or_is_dropped(settings: Settings) -> None:
    async with open_embedded(settings) as runtime:
        events = [report(f"R{n}", f"Q-{n} の本文 {n}。") for n in range(40)]
        async with client_of(runtime, settings) as client:
            await client.post("/v1/events?wait=applied&timeout=30s", json=events)
        await runtime.replays.start(ReplayPlan(into="new"))
    async with open_embedded(settings) as runtime:
        assert (await runtime.replays.finished("g2", 30)).phase == "complete"
        assert (await runtime.replays.compare("g1", "g2")).exact
        assert await runtime.replays.prune(["g2"]) == ["g2"]
        await runtime.replays.start(ReplayPlan(into="new"))
    other = settings.model_copy(update={"embedder": "none"})
    async with open_embedded(other) as runtime:  # what was begun with other models cannot be finished with these
        assert [(g.name, g.state) for g in await runtime.state.generations()] == [("g1", "live")]


@pytest.mark.parametrize(
    ("method", "url"),
    [("GET", "/v1/generations"), ("POST", "/v1/generations/g1/promote"), ("POST", "/v1/generations/rollback"),
     ("POST", "/v1/generations/prune"), ("POST", "/v1/generations/compare")],
)  # fmt: skip
async def test_generations_are_for_operators(client: httpx.AsyncClient, method: str, url: str) -> None:
    body = {"first": "g1", "second": "g1"} if url.endswith("compare") else {}
    response = await client.request(method, url, headers=as_groups("staff"), json=body if method == "POST" else None)
    assert response.status_code == 403


@pytest.mark.parametrize(
    ("body", "pointer"),
    [({"into": "nowhere"}, "/into"), ({"into": "new", "form": "beginning"}, "/form"), ({"from": "soon"}, "/from"),
     ({"into": "new", "holding": ["語"]}, "/holding"),
     ({"into": "live", "from": "log:0:1", "holding": ["語"]}, "/from")],
    ids=str,
)  # fmt: skip
async def test_a_wrong_plan_is_pointed_at(client: httpx.AsyncClient, body: dict[str, object], pointer: str) -> None:
    response = await client.post("/v1/replay", json=body)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == pointer
