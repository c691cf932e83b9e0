"""Freshness, dead letters, status, digest, replay, probes, metrics, OpenAPI."""

import asyncio
from typing import Any

import httpx
import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import BackendUnavailable
from tests.api.conftest import Load, as_groups
from tests.api.plant import report

STAFF = as_groups("staff")


async def test_freshness_tells_watermarks_and_tokens(client: httpx.AsyncClient, plant: str) -> None:
    body = (await client.get("/v1/freshness", params={"token": plant})).json()
    assert {"records", "chunks", "graph", "pending"} <= body["watermarks"].keys()
    assert body["token"]["satisfied"] is True and body["token"]["parts"] == 8
    assert (await client.get("/v1/freshness")).json()["token"] is None
    assert (await client.get("/v1/freshness?token=zz")).json()["errors"][0]["pointer"] == "/token"


class TestDeadLetters:
    async def test_they_are_listed_shown_and_tried_again(self, client: httpx.AsyncClient) -> None:
        bad = {**report("R1", "本文"), "op": "explode"}
        name = (await client.post("/v1/events", json=bad)).json()["dead_letter"]
        listed = (await client.get("/v1/dead-letters")).json()["dead_letters"]
        assert [letter["id"] for letter in listed] == [name] and listed[0]["payload"] is None
        shown = (await client.get(f"/v1/dead-letters/{name}")).json()
        assert '"explode"' in shown["payload"] and shown["code"] and shown["reason"]
        again = await client.post(f"/v1/dead-letters/{name}/retry")
        assert again.status_code == 200 and "rejected again" in again.json()["status"]

    async def test_bytes_that_are_no_text_come_in_base64(self, client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/events", content=b"\xff\xfe", headers={"content-type": "application/json"})
        shown = (await client.get(f"/v1/dead-letters/{response.json()['dead_letter']}")).json()
        assert shown["payload_base64"] == "//4=" and shown["payload"] is None

    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_unknown_ones_are_404(self, client: httpx.AsyncClient, method: str) -> None:
        url = "/v1/dead-letters/nope" + ("/retry" if method == "POST" else "")
        assert (await client.request(method, url)).status_code == 404


@pytest.mark.parametrize(
    ("method", "url"),
    [("GET", "/v1/dead-letters"), ("GET", "/v1/dead-letters/x"), ("POST", "/v1/dead-letters/x/retry"),
     ("GET", "/v1/status"), ("GET", "/v1/digest"), ("POST", "/v1/replay")],
)  # fmt: skip
async def test_operations_are_for_operators(client: httpx.AsyncClient, method: str, url: str) -> None:
    response = await client.request(method, url, headers=STAFF)
    assert response.status_code == 403
    assert response.headers["content-type"].startswith("application/problem+json")


async def test_status_digest_and_replay(client: httpx.AsyncClient, plant: str) -> None:
    before = (await client.get("/v1/digest")).json()
    first = (await client.get("/v1/status")).json()
    done = await client.post("/v1/replay")
    assert done.status_code == 200, done.text
    after, second = (await client.get("/v1/digest")).json(), (await client.get("/v1/status")).json()
    assert before == after and first["generation"] != second["generation"]
    answer = await client.post("/v1/query", json={"question": "Q-42の停止原因は何か。"})
    assert answer.json()["answer"]["answerable"]


async def test_probes(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health/live")).json() == {"status": "ok"}
    ready = (await client.get("/health/ready")).json()
    assert ready["status"] == "ok" and ready["paused"] == 0
    assert {name: store["status"] for name, store in ready["stores"].items()} == {
        "state": "up",
        "chunks": "up",
        "graph": "up",
    }


async def test_a_store_that_does_not_answer_is_named(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise BackendUnavailable("the graph in /secret/place is away")

    async with runtime.live() as indexes:
        monkeypatch.setattr(indexes.graph, "revision", broken)
    response = await client.get("/health/ready")
    assert response.status_code == 503 and int(response.headers["retry-after"]) > 0
    assert response.headers["content-type"].startswith("application/problem+json")
    assert response.json()["stores"]["graph"]["status"] == "down" and "graph (since 2" in response.json()["detail"]
    assert "/secret/place" not in response.text
    metrics = (await client.get("/metrics")).text
    assert 'shinsen_store_up{store="graph"} 0.0' in metrics and 'shinsen_store_up{store="state"} 1.0' in metrics


async def test_paused_indexing_is_shown(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> Any:
        raise BackendUnavailable("the graph is away")

    async with runtime.live() as indexes:
        monkeypatch.setattr(indexes.graph, "collect", broken)
    await client.post("/v1/events", json=report("R1", "本文。"))
    for _ in range(100):
        ready = await client.get("/health/ready")
        if ready.json()["status"] == "paused":
            break
        await asyncio.sleep(0.05)
    assert ready.status_code == 200 and ready.json()["paused"] == 1, ready.text
    assert "shinsen_indexing_paused 1.0" in (await client.get("/metrics")).text
    warnings = (await client.get("/v1/freshness")).json()["operators"]["warnings"]
    assert warnings == ["indexing is paused: the graph is away"]


async def test_change_to_searchable_times_by_store_and_collection(client: httpx.AsyncClient, load: Load) -> None:
    await load([report(f"R{n}", "本文。") for n in range(3)])
    body = (await client.get("/v1/freshness")).json()
    times = {(t["collection"], t["store"]): t for t in body["change_to_searchable"]}
    for place in (("plant/reports", "records"), ("plant/reports", "chunks"), ("*", "graph")):
        assert times[place]["count"] == 3
        assert 0 < times[place]["p50_ms"] <= times[place]["p95_ms"] <= times[place]["p99_ms"] < 60_000
    assert [stage["stage"] for stage in body["operators"]["stages"]] == ["reconcile", "index"]
    assert [stage["lag"] for stage in body["operators"]["stages"]] == [0, 0]
    assert body["operators"]["dead_letters"] == 0 and body["oldest_unapplied"] == ""
    theirs = (await client.get("/v1/freshness", headers=STAFF)).json()
    assert {t["collection"] for t in theirs["change_to_searchable"]} == {"*"} and theirs["operators"] is None
    text = (await client.get("/metrics")).text
    assert 'shinsen_change_to_searchable_seconds_count{collection="plant/reports",store="chunks"} 3.0' in text
    assert (
        'shinsen_change_to_searchable_seconds_bucket{collection="plant/reports",le="300.0",store="graph"} 3.0' in text
    )
    assert 'shinsen_stage_members{stage="reconcile"} 1.0' in text and "shinsen_dead_letters 0.0" in text


async def test_metrics_count_by_route_and_hold_no_contents(client: httpx.AsyncClient, load: Load) -> None:
    await load([report("R1", "本文。")])
    await client.post("/v1/query", json={"question": "秘密の質問"})
    await client.get("/v1/documents/plant/reports/R1")
    text = (await client.get("/metrics")).text
    assert 'shinsen_http_requests_total{method="POST",route="/v1/events",status="200"} 1.0' in text
    assert "shinsen_events_total" in text and "shinsen_answers_total" in text and "shinsen_pending_documents" in text
    assert "秘密" not in text and "R1" not in text


async def test_openapi_describes_what_is_served(client: httpx.AsyncClient) -> None:
    schema = (await client.get("/schema/openapi.json")).json()
    expected = {"/v1/events", "/v1/query", "/v1/query/stream", "/v1/search", "/v1/sparql", "/v1/freshness", "/v1/graph",
                "/v1/documents/{source}/{collection}/{key}", "/v1/entities/{entity}", "/v1/dead-letters"}  # fmt: skip
    assert expected <= schema["paths"].keys()
    query = schema["components"]["schemas"]["QueryRequest"]["properties"]
    assert {"question", "source", "mode", "top_k", "filters", "min_freshness", "wait"} <= query.keys()
    bodies = schema["paths"]["/v1/events"]["post"]["requestBody"]["content"]
    assert {"application/json", "application/x-ndjson", "application/cloudevents+json"} <= bodies.keys()
    page = await client.get("/schema")
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text and "http://" not in page.text and "https://" not in page.text


async def test_metrics_count_generations_records_and_access_classes(client: httpx.AsyncClient, load: Load) -> None:
    await load([report(f"R{n}", "本文。") for n in range(3)])
    text = (await client.get("/metrics")).text
    assert 'shinsen_generation_documents{generation="g1",state="live"} 3.0' in text
    assert "shinsen_records 3.0" in text
    assert "shinsen_access_classes 1.0" in text and "shinsen_access_classes_limit 500.0" in text
