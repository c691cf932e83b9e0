"""The same events over HTTP into both profiles: the same answers from both; and what waiting and retrying do."""

import asyncio
import datetime
import time
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from ops.stack.server import Endpoint
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from schemas.freshness import decode_token, encode_token
from schemas.outcome import TokenPart
from tests.api.conftest import MAPPINGS, client_of
from tests.api.plant import CAUSE, CORPUS, machine, report
from tests.stack.runtime_api import prepared, serving
from tests.stack.worker import Stack

pytestmark = pytest.mark.stack

QUESTIONS = [
    "Q-42の停止原因は何か。",
    "Q-42の置き場はどこか。",
    "青い選別機の担当は誰か。",
    "粉砕機に適用する手順書は何か。",
    "潤滑の記録",
    "Q-420",
    "月曜日に変わるものは何か。",
    "賠償の交渉",
    "火星の天気は",
]
CHANGES = [
    report("R2", "潤滑の記録。給油を毎日に改めた。", position=2, machine="Q-42"),
    {"source": "plant", "collection": "reports", "key": "N1", "position": 2, "op": "delete"},
    machine("Q-420", position=2, keeper="東田三郎", name="大型選別機", kind="選別機", aliases="緑の選別機"),
    report("R1", "古い版。", position=0),
    {"source": "plant", "collection": "reports"},
]
GROUPS = ("*", "staff", "legal")


@pytest.fixture(params=["fuseki", "oxigraph"])
async def stack(
    request: pytest.FixtureRequest, stack_server: Callable[[str], Endpoint], tmp_path: Path
) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, request.param, tmp_path)
    stack.settings = stack.settings.model_copy(update={"mappings": MAPPINGS})
    await prepared(stack)
    yield stack
    stack.end()
    await stack.remove()


async def load(client: httpx.AsyncClient) -> str:
    """Post the corpus and its changes; return the token of the changes."""
    first = await client.post("/v1/events?wait=applied&timeout=60s", json=CORPUS)
    assert first.status_code == 200, first.text
    assert {result["outcome"] for result in first.json()["results"]} == {"applied"}
    second = await client.post("/v1/events?wait=applied&timeout=60s", json=CHANGES)
    ends = [result.get("outcome", result["status"]) for result in second.json()["results"]]
    assert ends == ["applied", "applied", "applied", "superseded", "rejected"], second.text
    token: str = second.json()["token"]
    return token


async def asked(client: httpx.AsyncClient, token: str) -> dict[str, Any]:
    """Ask everything of one profile; what engines may order differently is sorted, and scores are left out."""
    said: dict[str, Any] = {}
    for group in GROUPS:
        headers = {"X-Shinsen-Groups": group}
        for question in QUESTIONS:
            body = {"question": question, "min_freshness": token, "wait": "30s"}
            answer = (await client.post("/v1/query", json=body, headers=headers)).json()
            found = (await client.post("/v1/search", json={"query": question, "top_k": 50}, headers=headers)).json()
            said[f"{group}: {question}"] = {
                "answerable": answer["answer"]["answerable"],
                "claims": [(c["text"], sorted(s["document"] for s in c["spans"])) for c in answer["answer"]["claims"]],
                "route": (answer["route"]["strategy"], answer["route"]["entities"]),
                "steps": [(step["source"], step["outcome"]) for step in answer["route"]["steps"]],
                "evidence": sorted((e["document"]["key"], e["chunk_id"], str(e["span"])) for e in answer["evidence"]),
                "warnings": answer["warnings"],
                "hits": sorted(hit["chunk_id"] for hit in found["hits"]),
                "best": [hit["document"]["key"] for hit in found["hits"][:1]],
                "facets": found["facets"],
            }
        listed = (await client.get("/v1/documents", params={"limit": 200}, headers=headers)).json()["documents"]
        said[f"{group}: documents"] = listed
        for one in listed:
            said[f"{group}: {one['key']}"] = _sorted(
                (await client.get(f"/v1/documents/{one['key']}", headers=headers)).json()
            )
        graph = (await client.get("/v1/graph", params={"entity": "Q-42", "hops": 2}, headers=headers)).json()
        said[f"{group}: graph"] = _sorted(graph)
        said[f"{group}: shown"] = await _shown(client, headers)
        found = (await client.get("/v1/entities", params={"q": "選別"}, headers=headers)).json()
        said[f"{group}: entities"] = _sorted(found)
        query = {"query": "SELECT DISTINCT ?s ?p ?o { ?s ?p ?o }"}
        rows = (await client.post("/v1/sparql", json=query, headers=headers)).json()["results"]["bindings"]
        said[f"{group}: sparql"] = sorted(str(sorted((n, *_term(cell)) for n, cell in row.items())) for row in rows)
    said["letters"] = [one["id"] for one in (await client.get("/v1/dead-letters")).json()["dead_letters"]]
    said["digest"] = (await client.get("/v1/digest")).json()
    return said


async def _shown(client: httpx.AsyncClient, headers: dict[str, str]) -> dict[str, Any]:
    """Suggestions, pages by cursor, and what stands around hits."""
    said: dict[str, Any] = {}
    for typed in ("せんべつき", "大型選別", "だいさんそうこ", "第三倉故", "東田三朗", "あかいふんさいき"):
        said[typed] = (await client.get("/v1/suggestions", params={"q": typed}, headers=headers)).json()
    body: dict[str, Any] = {
        "query": "粉砕機の停止",
        "top_k": 2,
        "cursor": "",
        "expand": {"parent": True},
        "snippet": 40,
    }
    hits = []
    while body["cursor"] is not None:
        page = (await client.post("/v1/search", json=body, headers=headers)).json()
        hits += page["hits"]
        body["cursor"] = page["next"]
    said["hits"] = sorted((hit["chunk_id"], str(hit["context"]), str(hit["snippet"])) for hit in hits)
    assert len(said["hits"]) == len({hit["chunk_id"] for hit in hits})
    return said


def _term(cell: dict[str, str]) -> tuple[str, str, str]:
    """A term whatever form the server gives to its number or time."""
    value, kind = cell["value"], cell.get("datatype", "").rpartition("#")[2]
    if kind in ("decimal", "integer", "double"):
        value = str(Decimal(value).normalize())
    if kind == "dateTime":
        value = datetime.datetime.fromisoformat(value).isoformat()
    return cell["type"], value, kind


def _differing(here: Any, there: Any) -> dict[str, Any]:
    if isinstance(here, dict):
        return {name: (here[name], there.get(name)) for name in here if here[name] != there.get(name)}
    if isinstance(here, list) and all(isinstance(item, str) for item in here):
        return {"only here": set(here) - set(there), "only there": set(there) - set(here)} if here != there else {}
    return {} if here == there else {"": (here, there)}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item) for name, item in value.items()}
    return sorted((_sorted(item) for item in value), key=str) if isinstance(value, list) else value


async def test_both_profiles_give_the_same_answers(stack: Stack, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "embedded", analyzer="stub", embedder="stub", mappings=MAPPINGS, workers=1)
    async with open_embedded(settings) as runtime, client_of(runtime, settings) as client:
        embedded = await asked(client, await load(client))
    stack.start()
    async with serving(stack.settings) as (_, client):
        there = await asked(client, await load(client))
    assert any(CAUSE in str(answer) for answer in there.values())
    assert there.keys() == embedded.keys()
    for name, answer in embedded.items():
        assert _differing(answer, there[name]) == {}, name


@pytest.mark.parametrize("stack", ["oxigraph"], indirect=True)
async def test_tokens_waits_times_and_retries(stack: Stack) -> None:
    worker = stack.start()
    async with serving(stack.settings) as (runtime, client), serving(stack.settings) as (_, other):
        while (await client.get("/v1/freshness")).status_code == 503:  # until a worker has made the first generation
            assert worker.poll() is None, stack.tail()
            await asyncio.sleep(0.2)
        token = (await client.post("/v1/events", json=report("R9", "給水ポンプの点検をした。"))).json()["token"]
        body = {"query": "給水ポンプ", "min_freshness": token, "wait": "60s"}
        found = (await other.post("/v1/search", json=body)).json()  # another process than took the event
        assert [hit["document"]["key"] for hit in found["hits"]] == ["plant/reports/R9"]
        await asyncio.wait_for(runtime._follower.following.wait(), 20)
        started = time.monotonic()
        posted = await client.post("/v1/events?wait=applied&timeout=30s", json=report("R9", "給水弁を替えた。", 2))
        took = time.monotonic() - started
        assert posted.status_code == 200 and posted.json()["results"][0]["outcome"] == "applied"
        print(f"a change was applied, and its waiter told, after {1000 * took:.0f} ms")
        times = {
            (t["collection"], t["store"]): t for t in (await client.get("/v1/freshness")).json()["change_to_searchable"]
        }
        assert times["plant/reports", "chunks"]["count"] >= 1 and times["plant/reports", "records"]["p95_ms"] > 0
        assert times["plant/reports", "chunks"]["p50_ms"] < 1000 * took + 100
        late = await client.post(
            "/v1/search", json={**body, "min_freshness": _after(posted.json()["token"]), "wait": "300ms"}
        )
        assert late.status_code == 504
    assert worker.poll() is None


def _after(token: str) -> str:
    return encode_token([TokenPart(part.document, part.position + "9") for part in decode_token(token)])
