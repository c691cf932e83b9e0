"""`POST /v1/query/stream`: the answer as server-sent events."""

import json
from typing import Any

import httpx
import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import BackendUnavailable

QUESTION = {"question": "Q-42の停止原因は何か。"}


def parsed(text: str) -> list[tuple[str, Any]]:
    blocks = [block for block in text.replace("\r\n", "\n").split("\n\n") if block.strip()]
    events = []
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        events.append((fields["event"], json.loads(fields["data"])))
    return events


async def test_the_stream_tells_the_same_as_the_plain_answer(client: httpx.AsyncClient, plant: str) -> None:
    response = await client.post("/v1/query/stream", json=QUESTION)
    assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream")
    events = parsed(response.text)
    names = [name for name, _ in events]
    assert names[0] == "route" and names[1] == "evidence" and names[-2:] == ["check", "done"]
    done = events[-1][1]
    assert names.count("token") == len(done["answer"]["claims"]) > 0
    plain = (await client.post("/v1/query", json=QUESTION)).json()
    assert done["answer"] == plain["answer"] and events[1][1] == plain["evidence"]


async def test_refusals_come_before_the_stream(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/query/stream", json={"question": " "})).status_code == 400
    assert (await client.post("/v1/query/stream", json={**QUESTION, "mode": "crag"})).status_code == 501
    assert (await client.post("/v1/query/stream", json={**QUESTION, "min_freshness": "x"})).status_code == 400


async def test_a_failure_midway_is_an_event_with_a_problem(
    client: httpx.AsyncClient, runtime: EmbeddedRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise BackendUnavailable("the analyzer does not answer")

    monkeypatch.setattr(runtime.analyzer, "questions", broken)
    events = parsed((await client.post("/v1/query/stream", json=QUESTION)).text)
    assert [name for name, _ in events] == ["error"] and events[0][1]["status"] == 503
    plain = await client.post("/v1/query", json=QUESTION)
    assert plain.status_code == 503 and plain.headers["retry-after"]
