"""A rebuild from records that the broker has compacted, after the source's own messages are gone: nothing differs."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from ops.stack.server import Endpoint
from pipeline.ports.generations import ReplayPlan
from pipeline.stack.runtime import StackRuntime
from pipeline.stack_wiring import open_stack_runtime
from schemas.change_event import RawEvent
from tests.differential.events import Change, history
from tests.differential.running import MAPPINGS, MAX_EVENT, one_by_one, scratch
from tests.faults.arrivals import messages
from tests.faults.stream import changes
from tests.stack.test_same_digest import publish
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(600)]
TINY = {
    "segment.ms": "500",
    "min.cleanable.dirty.ratio": "0.01",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "500",
    "delete.retention.ms": "0",
}
COMPACTED_S = 120.0
"""The broker's cleaner looks every 15 seconds."""
ROLL = b"notes/roll"
MACHINE = ("赤い荷役車", "フォークリフト", ["all-staff"], "2")


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    stack.settings = stack.settings.model_copy(update={"mappings": MAPPINGS, "max_event": MAX_EVENT})
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


def snapshot(event: RawEvent) -> RawEvent:
    """The same row as Debezium reads it in a snapshot; it arrives late."""
    body = json.loads(event.value or b"")
    return RawEvent(value=json.dumps(body | {"op": "r"}, ensure_ascii=False).encode())


async def test_a_rebuild_from_compacted_records_gives_the_same_digest(stack: Stack) -> None:
    kept, gone = (Change("machine", key, MACHINE) for key in ("F-17", "K-08"))
    renamed = Change("machine", "F-17", ("三号機", *MACHINE[1:]))
    happened = [kept, gone, renamed, Change("machine_gone", "K-08"), *changes(7, 120), renamed]
    all_events = history([*happened, *(Change("note", f"roll{n % 6}", (f"覚書 {n}",)) for n in range(600))])
    events, rolling = all_events[: len(happened)], all_events[len(happened) :]
    # After everything, too: of a row that was changed since, and of a row that is no more.
    late = [snapshot(event) for event in events[:2]]
    await alter(stack)
    worker = stack.start()
    # In parts, since of a batch only the newest version of each document becomes a record's message.
    for start in range(0, len(events), 25):
        await publish(stack, messages(events[start : start + 25]))
        await stack.settled(worker)
    await publish(stack, messages(late[1:]))
    events += await compacted(stack, rolling)
    await stack.settled(worker)
    await emptied(stack)
    async with open_stack_runtime(stack.settings) as runtime:
        before = await runtime.digest()
        started = await runtime.replays.start(ReplayPlan(into="new"))
        await publish(stack, messages(late))  # while it is built
        status = await runtime.replays.finished(started.generation, 240)
        assert (status.phase, status.stuck) == ("complete", ""), status
        await runtime.replays.promote(started.generation, wait_s=60)
        await publish(stack, messages(late))  # and afterwards
        await stack.settled(worker)
        assert await runtime.digest() == before
        await never_resurrected(stack, runtime)
        await runtime.replays.prune()
    with scratch() as folder:
        assert await one_by_one(folder, events) == before


async def never_resurrected(stack: Stack, runtime: StackRuntime) -> None:
    """Hold that every event ended, and that what late reads said stands nowhere."""
    last = [await stack.length(stack.topics.events.name, n) for n in range(stack.settings.partitions)]
    ids = [f"{stack.topics.events.name}-{n}-{m}" for n, end in enumerate(last) for m in range(end)]
    counted = Counter((await runtime.state.outcomes(ids)).values())
    assert counted.total() == len(ids)
    records = await runtime.state.records(["erp/equipment/F-17"])
    assert records["erp/equipment/F-17"].columns["aliases"] == "三号機"


async def alter(stack: Stack) -> None:
    names = [stack.topics.records.name, stack.topics.records_bulk.name]
    async with admin_of(stack) as admin:
        # All of them: what is not named falls back to the broker's default.
        settings = TINY | {"cleanup.policy": "compact", "max.message.bytes": str(stack.topics.records.max_message)}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, settings) for name in names])


async def compacted(stack: Stack, rolling: Sequence[RawEvent]) -> list[RawEvent]:
    """Wait until the broker has compacted the records; the newest segment never is, so events begin new ones.

    Returns the events that it took for that.
    """
    end = time.monotonic() + COMPACTED_S
    taken: list[RawEvent] = []
    while repeated := {key: n for key, n in (await messages_in(stack)).items() if n > 1 and ROLL not in key}:
        assert time.monotonic() < end, f"not compacted: {repeated}"
        some = rolling[len(taken) : len(taken) + 6]
        taken += some
        await publish(stack, messages(some))
        await asyncio.sleep(2)
    left, sent = await messages_in(stack), 0
    for n in range(stack.settings.partitions):
        sent += await stack.length(stack.topics.records.name, n)
    assert left.total() < sent, "nothing had to be compacted"
    print(f"{left.total()} of {sent} messages left, {len(left)} records")
    return taken


async def messages_in(stack: Stack) -> Counter[bytes]:
    """Return how many messages the topic of records has by key; compaction leaves gaps between the offsets."""
    consumer = AIOKafkaConsumer(bootstrap_servers=stack.settings.kafka, auto_offset_reset="earliest")
    counted: Counter[bytes] = Counter()
    async with consumer:
        all_of = [TopicPartition(stack.topics.records.name, n) for n in range(stack.settings.partitions)]
        ends = await consumer.end_offsets(all_of)
        consumer.assign(all_of)
        for one in all_of:
            while await consumer.position(one) < ends[one]:
                for found in (await consumer.getmany(timeout_ms=500)).values():
                    counted.update(message.key for message in found)
    return counted


async def emptied(stack: Stack) -> None:
    """Remove all that the source published."""
    source, partitions = stack.topics.events.name, range(stack.settings.partitions)
    ends = {TopicPartition(source, n): RecordsToDelete(await stack.length(source, n)) for n in partitions}
    async with admin_of(stack) as admin:
        await admin.delete_records(ends)


@asynccontextmanager
async def admin_of(stack: Stack) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=stack.settings.kafka)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()
