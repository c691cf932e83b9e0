"""Freshness, dead letters, status, digest, replay, probes, metrics, OpenAPI."""

import httpx
import pytest

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
    assert (await client.get("/health/ready")).json() == {"status": "ok"}


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
