"""`POST /v1/events`: shapes, outcomes, refusals, back-pressure."""

import json
from typing import Any

import httpx
import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import Backpressure
from schemas.freshness import decode_token
from tests.api.plant import CORPUS, machine, report

GOOD = report("R1", "本文です。")


async def test_one_event_is_accepted_with_a_token(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/events", json=GOOD)
    assert response.status_code == 202
    body = response.json()
    assert body["accepted"] == 1 and body["results"][0]["status"] == "accepted"
    assert body["results"][0]["key"] == "plant/reports/R1"
    assert [part.document for part in decode_token(body["token"])] == ["plant/reports/R1"]


async def test_waiting_answers_200_with_each_outcome(client: httpx.AsyncClient) -> None:
    events = [report("R1", "新しい。", 5), report("R1", "古い。", 4), report("R1", "新しい。", 5)]
    response = await client.post("/v1/events?wait=applied&timeout=20s", json=events)
    assert response.status_code == 200
    assert sorted(result["outcome"] for result in response.json()["results"]) == ["applied", "duplicate", "superseded"]


async def test_ndjson_keeps_the_good_ones(client: httpx.AsyncClient) -> None:
    lines = [json.dumps(GOOD), "not json", "", json.dumps({**GOOD, "op": "explode"}), json.dumps(report("R2", "二。"))]
    response = await client.post(
        "/v1/events", content="\n".join(lines), headers={"content-type": "application/x-ndjson"}
    )
    assert response.status_code == 202
    body = response.json()
    assert (body["accepted"], body["rejected"]) == (2, 2)
    assert [result["status"] for result in body["results"]] == ["accepted", "rejected", "rejected", "accepted"]
    problems = [result["problem"] for result in body["results"] if result["status"] == "rejected"]
    assert [problem["status"] for problem in problems] == [400, 400]
    assert problems[1]["errors"][0]["pointer"] == "/op"
    assert len(decode_token(body["token"])) == 2


async def test_an_array_keeps_the_good_ones(client: httpx.AsyncClient) -> None:
    body = (await client.post("/v1/events", json=[GOOD, None, 5, {"source": "plant"}])).json()
    assert (body["accepted"], body["rejected"]) == (1, 3)


@pytest.mark.parametrize("raw", [b"nope", b"null", b'{"source":', b'\xff\xfe{"a":1}', b'"text"', b"[1,"])
async def test_one_bad_event_answers_its_own_problem(client: httpx.AsyncClient, raw: bytes) -> None:
    response = await client.post("/v1/events", content=raw, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.headers["content-type"].startswith("application/problem+json")
    letters = (await client.get("/v1/dead-letters")).json()["dead_letters"]
    assert [letter["id"] for letter in letters] == [response.json()["dead_letter"]]


async def test_a_batch_of_bad_ones_is_400_with_a_pointer_each(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/events", json=[{**GOOD, "op": "x"}, {**GOOD, "key": 7}])
    assert response.status_code == 400
    assert [error["pointer"] for error in response.json()["errors"]] == ["/0/op", "/1/key"]
    assert [result["status"] for result in response.json()["results"]] == ["rejected", "rejected"]


async def test_too_large_an_event_is_413(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/events", json=report("R1", "あ" * 70_000))
    assert response.status_code == 413 and response.json()["code"] == "too_large"


async def test_too_large_a_body_is_413_before_it_is_read(client: httpx.AsyncClient, runtime: EmbeddedRuntime) -> None:
    sent = 0

    async def body() -> Any:
        nonlocal sent
        for _ in range(100):
            sent += 65_536
            yield b" " * 65_536

    response = await client.post("/v1/events", content=body(), headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert response.headers["content-type"].startswith("application/problem+json")
    told = await client.post(
        "/v1/events", content=b"{}", headers={"content-type": "application/json", "content-length": "999999999"}
    )
    assert told.status_code == 413
    assert runtime.intake.end == 0


async def test_an_empty_body_is_400(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/events", content=b" \n")).status_code == 400


async def test_an_empty_batch_is_nothing(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/events?wait=applied", json=[])
    assert response.status_code in (200, 202) and response.json()["accepted"] == 0


async def test_other_media_types_are_415(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/events", content="a,b", headers={"content-type": "text/csv"})
    assert response.status_code == 415


CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "plant/reports",
    "type": "plant.report.created",
    "subject": "R7",
    "time": "2025-03-01T09:00:00Z",
    "datacontenttype": "application/json",
    "data": GOOD["record"],
}


class TestCloudEvents:
    async def test_structured_and_batch(self, client: httpx.AsyncClient) -> None:
        one = await client.post(
            "/v1/events", content=json.dumps(CLOUD_EVENT), headers={"content-type": "application/cloudevents+json"}
        )
        many = await client.post(
            "/v1/events",
            content=json.dumps([{**CLOUD_EVENT, "subject": "R8", "id": "2"}]),
            headers={"content-type": "application/cloudevents-batch+json"},
        )
        assert (one.status_code, many.status_code) == (202, 202), (one.text, many.text)
        assert one.json()["results"][0]["key"] == "plant/reports/R7"
        assert many.json()["results"][0]["key"] == "plant/reports/R8"

    async def test_binary(self, client: httpx.AsyncClient) -> None:
        headers = {
            f"ce-{name}": str(CLOUD_EVENT[name]) for name in ("specversion", "id", "source", "type", "subject", "time")
        }
        response = await client.post(
            "/v1/events", content=json.dumps(GOOD["record"]), headers={**headers, "content-type": "application/json"}
        )
        assert response.status_code == 202, response.text
        assert response.json()["results"][0]["key"] == "plant/reports/R7"


@pytest.mark.parametrize("query", ["wait=never", "timeout=soon", "timeout=61s", "timeout=-1", "lane=fast"])
async def test_bad_parameters_are_400(client: httpx.AsyncClient, query: str) -> None:
    response = await client.post(f"/v1/events?{query}", json=GOOD)
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "/" + query.partition("=")[0]


async def test_back_pressure_is_429_with_retry_after(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.intake, "_max_backlog", 1)
    monkeypatch.setattr(runtime.intake, "end", runtime.intake.end + 1)
    response = await client.post("/v1/events", json=CORPUS)
    assert response.status_code == 429 and int(response.headers["retry-after"]) >= 1
    assert response.json()["type"].endswith(":back-pressure")
    assert issubclass(Backpressure, Exception)


async def test_a_dead_event_is_told_as_its_outcome(client: httpx.AsyncClient) -> None:
    event = machine("Q-42", aliases="長" * 400)
    response = await client.post("/v1/events?wait=applied&timeout=20s", json=event)
    assert response.status_code == 200
    assert response.json()["results"][0]["outcome"] == "dead_letter"
    token = response.json()["token"]
    asked = await client.post("/v1/query", json={"question": "Q-42は何か", "min_freshness": token})
    assert asked.status_code == 409 and asked.json()["outcome"] == "dead_letter"
    state = (await client.get("/v1/freshness", params={"token": token})).json()["token"]
    assert state["satisfied"] is False and state["outcome"] == "dead_letter"
