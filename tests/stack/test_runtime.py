"""The stack's runtime without a worker: the door, lag, outcomes, generations, health; real servers."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ops.stack.server import Endpoint
from pipeline.clock import system_clock
from pipeline.errors import BackendUnavailable
from pipeline.ports.state import Generation
from pipeline.stack.runtime import StackRuntime
from schemas.change_event import RawEvent
from schemas.freshness import decode_token
from schemas.outcome import Outcome
from schemas.topics import APPLIED, ARRIVED, RECONCILED, reconcile_group
from tests.stack.runtime_api import event, prepared, serving
from tests.stack.worker import Stack

pytestmark = pytest.mark.stack


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    await prepared(stack, generation=True)
    yield stack
    stack.end()
    await stack.remove()


@pytest.fixture
async def served(stack: Stack) -> AsyncIterator[tuple[StackRuntime, httpx.AsyncClient]]:
    async with serving(stack.settings) as opened:
        yield opened


@pytest.fixture
def runtime(served: tuple[StackRuntime, httpx.AsyncClient]) -> StackRuntime:
    return served[0]


@pytest.fixture
def client(served: tuple[StackRuntime, httpx.AsyncClient]) -> httpx.AsyncClient:
    return served[1]


class TestDoor:
    async def test_events_go_to_kafka_by_lane_keyed_by_document(self, stack: Stack, client: httpx.AsyncClient) -> None:
        answer = await client.post("/v1/events", json=[event("1"), event("2")])
        assert answer.status_code == 202 and answer.json()["accepted"] == 2
        await client.post("/v1/events?lane=bulk", json=event("3"))
        live = await stack.read(stack.topics.events.name, 2)
        assert sorted(key for key, _, _ in live if key) == [b"cmms/reports/1", b"cmms/reports/2"]
        assert {headers["content-type"] for _, _, headers in live} == {b"application/json"}
        [(key, value, _)] = await stack.read(stack.topics.events_bulk.name, 2)
        assert key == b"cmms/reports/3" and msgspec.json.decode(value or b"") == event("3")

    async def test_event_ids_name_topic_partition_and_offset(self, stack: Stack, client: httpx.AsyncClient) -> None:
        results = (await client.post("/v1/events", json=[event("1"), event("1", position=2)])).json()["results"]
        partition = int(results[0]["event"].split("-")[-2])
        assert [r["event"] for r in results] == [f"{stack.topics.events.name}-{partition}-{n}" for n in (0, 1)]
        assert [part.document for part in decode_token(results[0]["token"])] == ["cmms/reports/1"]

    async def test_refused_events_are_dead_letters_and_the_good_ones_are_kept(
        self, stack: Stack, client: httpx.AsyncClient
    ) -> None:
        answer = (await client.post("/v1/events", json=[{"x": 1}, event("1")])).json()
        assert (answer["accepted"], answer["rejected"]) == (1, 1)
        letter = (await client.get(f"/v1/dead-letters/{answer['results'][0]['dead_letter']}")).json()
        assert letter["payload"] == '{"x":1}' and letter["code"] == "unknown_envelope"
        [(_, value, headers)] = await stack.read(stack.topics.dead_letters.name, 1)
        assert value == b'{"x":1}' and headers["shinsen-letter"].decode() == letter["id"]
        again = await client.post(f"/v1/dead-letters/{letter['id']}/retry")
        assert again.status_code == 200 and "rejected again" in again.json()["status"]

    async def test_too_long_a_backlog_is_429_and_nothing_is_taken(self, stack: Stack) -> None:
        few = stack.settings.model_copy(update={"max_backlog": 2})
        async with serving(few) as (_, client):
            first = await client.post("/v1/events", json=[event(str(n)) for n in range(3)])
            assert first.status_code == 202, f"a batch beyond the limit alone is taken when nothing waits: {first.text}"
            await asyncio.sleep(2)
            refused = await client.post("/v1/events", json=event("9"))
            assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
            assert "3 events wait" in refused.json()["detail"]
            assert sum([await stack.length(stack.topics.events.name, n) for n in range(2)]) == 3


class TestLag:
    async def test_what_nobody_read_is_lag_and_says_since_when(
        self, stack: Stack, runtime: StackRuntime, client: httpx.AsyncClient
    ) -> None:
        before = system_clock()
        await client.post("/v1/events", json=[event(str(n)) for n in range(5)])
        await asyncio.sleep(0.05)
        after = system_clock()
        await asyncio.sleep(3)
        body = (await client.get("/v1/freshness")).json()
        reconcile = body["operators"]["stages"][0]
        assert (reconcile["stage"], reconcile["lag"], reconcile["members"]) == ("reconcile", 5, 0)
        assert before[:22] <= body["watermarks"]["records"] <= after
        assert body["watermarks"]["chunks"] == body["oldest_unapplied"] == reconcile["oldest"]
        assert body["watermarks"]["pending"] == 5
        assert any("no worker serves the stage reconcile" in warning for warning in body["operators"]["warnings"])
        text = (await client.get("/metrics")).text
        assert 'shinsen_stage_members{stage="reconcile"} 0.0' in text and "shinsen_indexing_paused 1.0" in text
        assert (await client.get("/health/ready")).json()["status"] == "paused"

    async def test_what_a_group_acknowledged_is_no_lag(
        self, stack: Stack, runtime: StackRuntime, client: httpx.AsyncClient
    ) -> None:
        await client.post("/v1/events", json=[event("1", position=n) for n in range(1, 6)])
        group = reconcile_group(stack.settings.topic_prefix)
        consumer = AIOKafkaConsumer(
            stack.topics.events.name, bootstrap_servers=stack.settings.kafka, group_id=group,
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        async with consumer:
            message = await asyncio.wait_for(consumer.getone(), 20)
            await consumer.commit({TopicPartition(message.topic, message.partition): message.offset + 2})
            lag = await runtime._signals.look()
            assert (lag.of("reconcile"), lag.stages[0].members) == (3, 1)
            behind = [part for part in lag.stages[0].partitions if part.lag]
            assert [(part.topic, part.partition) for part in behind] == [(message.topic, message.partition)]
            assert lag.oldest("reconcile") == behind[0].oldest < lag.at
        assert (await runtime._signals.look()).stages[0].members == 0


class TestOutcomes:
    async def announce(self, stack: Stack, runtime: StackRuntime, outcome: Outcome, **times: str) -> None:
        await runtime.state.announce([outcome])
        headers = [(name, value.encode()) for name, value in times.items()]
        async with AIOKafkaProducer(bootstrap_servers=stack.settings.kafka) as producer:
            await producer.send_and_wait(
                stack.topics.outcomes.name, msgspec.json.encode(outcome), key=outcome.document.encode(), headers=headers
            )

    async def test_waiters_wake_at_once_and_times_are_counted(
        self, stack: Stack, runtime: StackRuntime, client: httpx.AsyncClient
    ) -> None:
        await asyncio.wait_for(runtime._follower.following.wait(), 20)
        waiting = asyncio.create_task(runtime.wait_outcomes(["e-0-1"], 20))
        await asyncio.sleep(1.2)  # past the fallback's next look
        started = time.monotonic()
        outcome = Outcome(event="e-0-1", document="cmms/reports/1", position="1", outcome="applied")
        stamps = {ARRIVED: "2026-01-01T00:00:00.000Z", RECONCILED: "2026-01-01T00:00:00.100Z",
                  APPLIED: "2026-01-01T00:00:00.400Z"}  # fmt: skip
        await self.announce(stack, runtime, outcome, **stamps)
        assert await waiting == {"e-0-1": "applied"}
        assert time.monotonic() - started < 1.0
        await asyncio.sleep(0.2)
        times = (await client.get("/v1/freshness")).json()["change_to_searchable"]
        found = {(t["collection"], t["store"]): t["p50_ms"] for t in times}
        assert found["cmms/reports", "records"] == 100 and found["cmms/reports", "chunks"] == 400
        assert found["*", "graph"] == 400
        text = (await client.get("/metrics")).text
        assert 'shinsen_change_to_searchable_seconds_sum{collection="cmms/reports",store="chunks"} 0.4' in text

    async def test_foreign_and_broken_messages_are_passed_over(self, stack: Stack, runtime: StackRuntime) -> None:
        await asyncio.wait_for(runtime._follower.following.wait(), 20)
        async with AIOKafkaProducer(bootstrap_servers=stack.settings.kafka) as producer:
            for value in (b"\xff", b"{}", None):
                headers = [(ARRIVED, b"yesterday"), (APPLIED, b"\xff")]
                await producer.send_and_wait(stack.topics.outcomes.name, value, key=b"k", headers=headers)
        outcome = Outcome(event="e-0-2", document="cmms/reports/2", position="1", outcome="applied")
        stamps = {ARRIVED: "2026-01-01T00:00:00Z", APPLIED: "2026-01-01T00:00:01Z"}
        await self.announce(stack, runtime, outcome, **stamps)
        for _ in range(100):
            if runtime.histograms():
                break
            await asyncio.sleep(0.05)
        assert {h.collection for h in runtime.histograms()} == {"cmms/reports"}


class TestGenerations:
    async def add(self, runtime: StackRuntime, name: str) -> None:
        await runtime.state.create_generation(Generation(name=name, created_at=system_clock()))

    async def test_another_process_promotes_and_the_next_request_sees_it(
        self, stack: Stack, runtime: StackRuntime
    ) -> None:
        async with serving(stack.settings) as (other, _), runtime.live() as before:
            await self.add(other, "g2")
            await other.state.promote("g2")
            async with runtime.live() as after:
                assert (before.generation, after.generation) == ("g1", "g2")
            assert await before.chunks.count() == 0, "who pinned the old one goes on reading it"

    async def test_a_generation_removed_under_a_request_ends_it_to_be_asked_again(
        self, stack: Stack, runtime: StackRuntime
    ) -> None:
        with pytest.raises(BackendUnavailable, match="g1 was removed while this request read it; ask again"):
            async with runtime.live():
                await self.add(runtime, "g2")
                await runtime.state.promote("g2")
                await runtime.state.drop_generation("g1")
        with pytest.raises(BackendUnavailable, match="ask again"):
            async with runtime.live():
                await self.add(runtime, "g3")
                await runtime.state.promote("g3")
                await runtime.state.drop_generation("g2")
                raise KeyError("not found, it seems")


async def test_a_letter_of_a_record_goes_back_to_the_workers(stack: Stack, runtime: StackRuntime) -> None:
    assert (await runtime.retry(["nope"]))["nope"].startswith("unknown: no dead letter has this id")
    [submission] = await runtime.submit([RawEvent(value=b"not json")])
    assert "rejected again" in (await runtime.retry([submission.dead_letter]))[submission.dead_letter]


async def test_all_stores_are_named(client: httpx.AsyncClient) -> None:
    stores = (await client.get("/health/ready")).json()["stores"]
    assert {name: store["status"] for name, store in stores.items()} == dict.fromkeys(
        ("postgres", "kafka", "weaviate", "sparql"), "up"
    )
