"""Rebuilds on real servers: under live load, killed, resumed, dropped, from a source that has lost messages."""

import asyncio
import contextlib
import itertools
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from api.app import create_app
from ops.stack.server import Endpoint
from pipeline.errors import NotFound, NotPossible
from pipeline.ports.generations import ReplayPlan
from pipeline.replay import kafka_supply
from pipeline.stack.runtime import StackRuntime
from pipeline.stack_wiring import open_stack_runtime
from tests.stack.prober import Prober
from tests.stack.worker import Message, Stack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
BUILT_S = SETTLED_S = 240.0
PROBED = {f"dms/memos/P{n}": f"probe{n}x" for n in range(4)}


def memo(document: str, position: int, body: str, op: str = "upsert") -> Message:
    source, collection, key = document.split("/")
    event: dict[str, Any] = {
        "source": source, "collection": collection, "key": key, "op": op, "position": position,
    }  # fmt: skip
    if op == "upsert":
        event["record"] = {"title": f"覚書 {key}", "body": body}
    return document, json.dumps(event, ensure_ascii=False).encode()


def corpus(number: int) -> list[Message]:
    probed = [memo(document, 1, f"ここに {word} と書いてある。F-17 を点検した。") for document, word in PROBED.items()]
    return probed + [memo(f"dms/memos/M{n}", 1, f"F-{n} のブレーキ {n} を点検した。") for n in range(number)]


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    made = stack.command("create-topics")
    assert made.wait(120) == 0, stack.tail()
    yield stack
    stack.end()
    async with open_stack_runtime(stack.settings) as runtime:
        for one in await runtime.state.generations():
            async with runtime.replays.indexes(one.name) as indexes:
                await indexes.chunks.drop()
                await indexes.graph.drop()
    await stack.remove()


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request of these tests takes long."""
    monkeypatch.setattr(kafka_supply, "DROP_WAIT_S", 2.0)


@asynccontextmanager
async def api(stack: Stack) -> AsyncIterator[tuple[StackRuntime, httpx.AsyncClient]]:
    """The runtime of an API process, with a client of the real application over it."""
    async with open_stack_runtime(stack.settings) as runtime:
        transport = httpx.ASGITransport(create_app(runtime, stack.settings), raise_app_exceptions=False)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=120) as client:
            yield runtime, client


@asynccontextmanager
async def feeding(stack: Stack) -> AsyncIterator[list[int]]:
    """Change documents all the while, those that are probed too; yields the positions used."""
    used = [1]

    async def feed() -> None:
        documents = itertools.cycle([*PROBED.items(), ("dms/memos/M1", "M1"), ("dms/memos/new", "new")])
        for position in itertools.count(2):
            document, word = next(documents)
            await stack.publish([memo(document, position, f"{position} 回目に {word} と書いた。F-18 も見た。")])
            used.append(position)
            await asyncio.sleep(0.2)

    task = asyncio.create_task(feed())
    try:
        yield used
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def post(client: httpx.AsyncClient, path: str, **body: Any) -> dict[str, Any]:
    response = await client.post(path, json=body)
    assert response.is_success, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def built(runtime: StackRuntime, name: str) -> None:
    status = await runtime.replays.finished(name, BUILT_S)
    assert (status.phase, status.stuck) == ("complete", ""), status


async def test_a_rebuild_under_live_load_never_misses_a_document(stack: Stack) -> None:
    worker = stack.start()
    await stack.publish(corpus(30))
    await stack.settled(worker, seconds=SETTLED_S)
    async with api(stack) as (runtime, client), Prober(client, PROBED).asking() as prober, feeding(stack) as used:
        started = await post(client, "/v1/replay", into="new")
        assert (started["generation"], started["resumed"], started["documents"] >= 34) == ("g2", False, True)
        await built(runtime, "g2")
        assert (await post(client, "/v1/generations/g2/promote", wait="60s"))["replaced"] == "g1"
        await prober.another_round()
        assert (await post(client, "/v1/generations/rollback", wait="60s"))["generation"] == "g1"
        await prober.another_round()
        assert (await post(client, "/v1/generations/g2/promote", wait="60s"))["generation"] == "g2"
        await prober.another_round()
        comparison = await runtime.replays.compare("g1", "g2")
        assert comparison.documents >= 34
        assert await post(client, "/v1/generations/prune") == {"pruned": ["g1"]}
        await prober.another_round()
    assert prober.wrong == [], f"{len(prober.wrong)} of {prober.asked} questions: {prober.wrong[:5]}"
    print(f"{prober.asked} questions, {len(used)} changes meanwhile")
    await stack.settled(worker, seconds=SETTLED_S)
    async with api(stack) as (runtime, client):
        (only,) = (await client.get("/v1/generations")).json()["generations"]
        assert (only["name"], only["state"], only["done"], only["relinks"]) == ("g2", "live", only["records"], 0)
        before = await runtime.digest()
        again = await post(client, "/v1/replay", into="new")
        await built(runtime, again["generation"])
        same = await post(client, "/v1/generations/compare", first="g2", second="g3", questions=list(PROBED.values()))
        assert same["exact"] and (same["comparison"]["chunks"], same["comparison"]["facts"]) == ({}, {}), same
        assert same["rankings"]["overlap"] == 1.0
        await post(client, "/v1/generations/g3/promote")
        assert await runtime.digest() == before
    await left_nothing(stack, "g1")


async def left_nothing(stack: Stack, generation: str) -> None:
    """A pruned generation has no topic, no group, no collection and no graph left."""
    prefix = stack.settings.topic_prefix
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.settings.kafka)
    await admin.start()
    try:
        topics = [topic for topic in await admin.list_topics() if topic.startswith(f"{prefix}analyzed-{generation}")]
        groups = [group for group, *_ in await admin.list_consumer_groups() if group.startswith(prefix)]
    finally:
        await admin.close()
    assert topics == []
    assert [group for group in groups if group.endswith(f"-{generation}")] == []
    async with httpx.AsyncClient(trust_env=False) as client:
        schema = (await client.get(f"{stack.settings.weaviate}/v1/schema")).json()
        assert [c["class"] for c in schema["classes"] if f"{stack.settings.space}{generation}" in c["class"]] == []
        query = "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"
        answer = await client.post(f"{stack.settings.sparql}/query", data={"query": query})
        graphs = [row["g"]["value"] for row in answer.json()["results"]["bindings"]]
        assert [graph for graph in graphs if f":{stack.settings.space}{generation}" in graph] == []


async def test_a_rebuild_that_was_killed_goes_on_or_is_dropped(stack: Stack) -> None:
    worker = stack.start()
    await stack.publish(corpus(120))
    await stack.settled(worker, seconds=SETTLED_S)
    worker.send_signal(signal.SIGKILL)
    worker.wait(30)
    async with api(stack) as (runtime, client):  # ends in the middle, as a killed API process does
        await post(client, "/v1/replay", into="new")
        refused = await client.post("/v1/generations/g2/promote", json={})
        assert refused.status_code == 409 and "not complete" in refused.json()["detail"]
    async with api(stack) as (runtime, client):
        for _ in range(3):
            (_, building) = (await client.get("/v1/generations")).json()["generations"]
            await asyncio.sleep(1)
        assert (building["phase"], building["members"]) == ("reading", 0)
        assert "no worker serves it" in building["stuck"]
        first = stack.start()
        again = await post(client, "/v1/replay", into="new")
        assert (again["generation"], again["resumed"]) == ("g2", True)
        other = await client.post("/v1/replay", json={"into": "new", "from": "2025-01-01T00:00:00Z"})
        assert other.status_code == 409 and "shinsen prune g2" in other.json()["detail"]
        while (await runtime.state.standing("g2")).behind == 124:  # noqa: ASYNC110 - others' work
            await asyncio.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.wait(30)
        worker = stack.start()
        await built(runtime, "g2")
        assert (await runtime.state.standing("g2")).behind == 0
        await post(client, "/v1/generations/g2/promote", wait="60s")
        assert await post(client, "/v1/generations/prune") == {"pruned": ["g1"]}
        dropped = await post(client, "/v1/replay", into="new")
        assert await post(client, "/v1/generations/prune", generations=[dropped["generation"]]) == {"pruned": ["g3"]}
        assert [g.name for g in await runtime.state.generations()] == ["g2"]
    await left_nothing(stack, "g3")


async def test_what_the_topic_has_lost_comes_from_the_records(stack: Stack) -> None:
    worker = stack.start()
    await stack.publish(corpus(16))
    await stack.publish([memo("dms/memos/M3", 2, "", "delete")])
    await stack.settled(worker, seconds=SETTLED_S)
    records = stack.topics.records.name
    lost = [await stack.length(records, n) for n in range(stack.settings.partitions)]
    await delete_records(stack, records, lost)
    await stack.publish([memo("dms/memos/late", 1, "これは後から来た。")])
    await stack.settled(worker, seconds=SETTLED_S)
    async with api(stack) as (runtime, client):
        for start, said in (
            (f"{records}:0:0", "it was deleted"),
            (f"{records}:0:999999", "it was never written"),
            (f"{records}:7:0", "they are in"),
            ("other:0:0", "they are in"),
            ("2020-01-01T00:00:00Z", "no message before"),
        ):
            response = await client.post("/v1/replay", json={"into": "new", "from": start})
            assert response.status_code == 409 and said in response.json()["detail"], response.text
        with pytest.raises(NotFound, match="dms/memos"):
            await runtime.replays.start(ReplayPlan(into="new", collections=("dms/none",)))
        assert [g.name for g in await runtime.state.generations()] == ["g1"], "refused before anything is made"
        before = await runtime.digest()
        await post(client, "/v1/replay", into="new")
        status = await runtime.replays.finished("g2", BUILT_S)
        assert (status.phase, status.done, status.filled) == ("complete", 21, 20)
        await post(client, "/v1/generations/g2/promote", wait="60s")
        assert await runtime.digest() == before
        with pytest.raises(NotPossible, match="promote another"):
            await runtime.replays.prune(["g2"])


async def delete_records(stack: Stack, topic: str, before: list[int]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.settings.kafka)
    await admin.start()
    try:
        # Kafka deletes from no topic that is only compacted: what an administrator may have done for a while.
        await admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, {"cleanup.policy": "compact,delete"})]
        )
        await admin.delete_records(
            {TopicPartition(topic, n): RecordsToDelete(before_offset=offset) for n, offset in enumerate(before)}
        )
    finally:
        await admin.close()


async def test_parts_are_done_again_and_tried_alone(stack: Stack) -> None:
    worker = stack.start()
    await stack.publish([*corpus(6), ("hr/notes/1", memo("hr/notes/1", 1, "別の収集。")[1])])
    await stack.settled(worker, seconds=SETTLED_S)
    async with api(stack) as (runtime, client):
        before = await runtime.digest()
        # Damage what the index holds of one document: doing it again mends it.
        async with runtime.live() as indexes:
            found = [chunk async for chunk in indexes.chunks.scan() if chunk.document == "dms/memos/P1"]
        async with runtime.replays.indexes("g1") as indexes:
            await indexes.chunks.collect({"dms/memos/P1": ()}, 1)
        assert found and await runtime.digest() != before
        done = await post(client, "/v1/replay", into="live", documents=["dms/memos/P1"])
        assert (done["generation"], done["documents"]) == ("g1", 1)
        await stack.settled(worker, seconds=SETTLED_S)
        assert await runtime.digest() == before
        assert (await post(client, "/v1/replay", into="live", holding=["probe2x"]))["documents"] == 1
        assert (await post(client, "/v1/replay", into="live", collections=["hr/notes"]))["documents"] == 1
        since = await post(client, "/v1/replay", **{"into": "live", "from": f"{stack.topics.records.name}:0:0"})
        assert since["documents"] == 11
        await stack.settled(worker, seconds=SETTLED_S)
        assert await runtime.digest() == before

        trial = await post(client, "/v1/replay", into="new", collections=["hr/notes"])
        assert (await runtime.replays.finished(trial["generation"], BUILT_S)).phase == "partial"
        assert (await runtime.replays.compare("g1", "g2", ["hr/notes"])).exact
        refused = await client.post("/v1/generations/g2/promote", json={})
        assert refused.status_code == 409 and "partial" in refused.json()["detail"]
        assert (await post(client, "/v1/replay", into="new"))["resumed"]
        await built(runtime, "g2")
        assert (await runtime.replays.compare("g1", "g2")).exact
