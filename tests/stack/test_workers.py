"""Several workers at once, over real servers: what stands in the end is what the embedded profile has."""

import asyncio
import datetime
import json
import random
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from ops.stack.server import Endpoint
from pipeline.agents.topic_admin import create_topics
from pipeline.clock import system_clock
from pipeline.digest import digest
from pipeline.ports.state import Generation
from pipeline.settings import Settings
from pipeline.stack_wiring import open_indexes, open_stack_stores, open_state
from pipeline.wiring import open_embedded
from schemas.change_event import RawEvent
from schemas.outcome import Outcome
from schemas.topics import APPLIED, ARRIVED, RECONCILED, Topic
from tests.differential.events import ALIASES, GROUPS, KINDS, MACHINES, NOTES, SENTENCES, Change, history
from tests.differential.running import MAPPINGS
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults]

Worker = subprocess.Popen[bytes]


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "oxigraph", tmp_path)
    stack.settings = stack.settings.model_copy(update={"mappings": MAPPINGS, "partitions": 4})
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


def random_history(seed: int, number: int) -> list[RawEvent]:
    """Changes of all kinds, drawn by a seed."""
    chance = random.Random(seed)
    return history([_change(chance) for _ in range(number)])


def _change(chance: random.Random) -> Change:
    kind = chance.choice(["machine"] * 4 + ["report"] * 8 + ["note"] * 2 + ["report_gone", "machine_gone", "garbage"])
    groups = chance.choice(GROUPS)
    if kind == "machine":
        content = (chance.choice(ALIASES), chance.choice(KINDS), groups, "1.50")
        return Change(kind, chance.choice(MACHINES), content)
    if kind == "report":
        sentences = tuple(chance.sample(SENTENCES, chance.randint(1, 5)))
        return Change(kind, f"r{chance.randint(1, 12)}", (sentences, groups, "田中"))
    if kind == "note":
        return Change(kind, f"n{chance.randint(1, 4)}", (chance.choice(NOTES),))
    if kind == "garbage":
        return Change(kind, content=(f"not json {chance.random()}".encode(),))
    return Change(kind, chance.choice(MACHINES) if kind == "machine_gone" else f"r{chance.randint(1, 12)}")


async def publish(stack: Stack, events: Sequence[RawEvent], seed: int = 0, topic: str = "") -> None:
    """Send events under random keys: one document's events come through all partitions, in any order."""
    chance = random.Random(seed)
    async with AIOKafkaProducer(
        bootstrap_servers=stack.settings.kafka, acks="all", max_request_size=9 << 20
    ) as producer:
        for event in events:
            key = str(chance.random()).encode()
            await producer.send_and_wait(topic or stack.topics.events.name, event.value, key=key)


async def embedded_digest(folder: Path, events: Sequence[RawEvent], **more: object) -> dict[str, str]:
    settings = Settings(data=folder, analyzer="stub", embedder="stub", mappings=MAPPINGS, **more)  # type: ignore[arg-type]
    async with open_embedded(settings) as runtime:
        for event in events:
            await runtime.submit([event])
        return await runtime.digest()


async def stack_digest(stack: Stack, generation: str = "") -> dict[str, str]:
    async with open_stack_stores(stack.settings, {}) as stores:
        if not generation:
            return await digest(stores.state, stores.generation, stores.chunks, stores.graph)
        indexes = open_indexes(stack.settings, generation)
        try:
            return await digest(stores.state, generation, indexes.chunks, indexes.graph)
        finally:
            await indexes.close()


async def ended(worker: Worker, number: signal.Signals) -> int:
    worker.send_signal(number)
    return await asyncio.to_thread(worker.wait, 60)


async def test_workers_come_and_go_under_load_and_nothing_is_lost(stack: Stack, tmp_path: Path) -> None:
    events = random_history(7, 240)
    first, second = stack.start(stub_delay=0.05), stack.start(stub_delay=0.05)
    await until(lambda: stack.log.read_text().count("generation_served") == 2, second, stack)
    await publish(stack, events[:80])
    await asyncio.sleep(3)
    await ended(first, signal.SIGKILL)
    third = stack.start()
    await publish(stack, events[80:160], 1)
    await asyncio.sleep(3)
    assert await ended(second, signal.SIGTERM) == 0, stack.tail()
    fourth = stack.start()
    await publish(stack, events[160:], 2)
    await stack.settled(third, fourth, seconds=240)
    assert await stack_digest(stack) == await embedded_digest(tmp_path / "embedded", events)
    outcomes: dict[str, set[str]] = {}
    for _, value, _ in await stack.read(stack.topics.outcomes.name, stack.settings.partitions):
        outcome = msgspec.json.decode(value or b"", type=Outcome)
        outcomes.setdefault(outcome.event, set()).add(outcome.outcome)
    assert len(outcomes) == len(events), "every event ends on the topic"
    async with open_state(stack.settings) as state:
        assert set((await state.outcomes(list(outcomes))).keys()) == outcomes.keys()


async def test_a_stopped_owner_that_goes_on_late_does_no_harm(stack: Stack, tmp_path: Path) -> None:
    events = random_history(11, 120)
    slow = stack.start(stub_delay=0.5)
    await publish(stack, events[:60])
    await asyncio.sleep(6)
    slow.send_signal(signal.SIGSTOP)
    fast = stack.start()
    await publish(stack, events[60:], 1)
    await asyncio.sleep(20)  # its session is over, and its partitions are the other's
    slow.send_signal(signal.SIGCONT)
    await asyncio.sleep(3)
    await stack.settled(fast, seconds=240)
    assert slow.poll() in (None, 1), "it goes on, or ends to be started again"
    assert await stack_digest(stack) == await embedded_digest(tmp_path / "embedded", events)


async def test_a_name_reaches_the_documents_of_all_workers(stack: Stack, tmp_path: Path) -> None:
    reports = [Change("report", f"r{n}", (("赤い荷役車が構内で停止した。",), ["all-staff"], "田中")) for n in range(40)]
    named = Change("machine", "F-17", ("赤い荷役車", "フォークリフト", ["all-staff"], "1.50"))
    renamed = Change("machine", "F-17", ("三号機", "フォークリフト", ["all-staff"], "1.50"))
    events = history([*reports[:20], named, *reports[20:], renamed, named])
    workers = [stack.start(), stack.start()]
    await publish(stack, events)
    await stack.settled(*workers, seconds=180)
    assert await stack_digest(stack) == await embedded_digest(tmp_path / "embedded", events)


async def test_a_generation_is_taken_up_followed_and_let_go_while_running(stack: Stack) -> None:
    events = random_history(3, 60)
    worker = stack.start()
    await publish(stack, events[:30])
    await stack.settled(worker)
    async with open_state(stack.settings) as state:
        (live,) = await state.generations()
        await state.create_generation(Generation(name="g2", created_at=system_clock(), versions=live.versions))
        await publish(stack, events[30:], 1)
        await until(lambda: '"generation": "g2", "state": "building"' in stack.log.read_text(), worker, stack)
        await stack.settled(worker)
        async with asyncio.timeout(90):
            while await state.behind("g2"):  # noqa: ASYNC110 - a table
                await asyncio.sleep(0.3)
        assert await stack_digest(stack, "g2") == await stack_digest(stack, live.name)
        await state.promote("g2")
        await state.drop_generation(live.name)
        await until(lambda: "generation_let_go" in stack.log.read_text(), worker, stack)
        (late,) = history([Change("report", "late", (("荷を降ろした。",), ["all-staff"], "田中"))])
        await publish(stack, [late])
        await stack.settled(worker)
        assert (await state.manifests("g2", ["dms/reports/late"]))["dms/reports/late"].op == "upsert"
        known = await state.outcomes([e for e in await outcome_ids(stack) if e])
        assert set(known.values()) <= {"applied", "superseded", "duplicate", "dead_letter"}
        assert (await state.records(["dms/reports/late"]))["dms/reports/late"].origins == (), "announced by g2"
    assert await ended(worker, signal.SIGTERM) == 0, stack.tail()


async def outcome_ids(stack: Stack) -> list[str]:
    found = await stack.read(stack.topics.outcomes.name, stack.settings.partitions)
    return [msgspec.json.decode(value or b"", type=Outcome).event for _, value, _ in found]


async def until(there: Callable[[], bool], worker: Worker, stack: Stack, seconds: float = 60) -> None:
    end = asyncio.get_running_loop().time() + seconds
    while not there():
        assert worker.poll() is None and asyncio.get_running_loop().time() < end, stack.tail()
        await asyncio.sleep(0.2)


async def test_sources_large_documents_strangers_and_times(stack: Stack, tmp_path: Path) -> None:
    foreign = f"{stack.settings.topic_prefix}erp.equipment"
    await create_topics(stack.settings.kafka, [Topic(name=foreign, partitions=3)])
    large = _report("large", "\n".join(f"F-{n} の点検記録。" * 20 for n in range(1_500)))
    huge = _report("huge", "荷" * 1_300_000)  # 3.9 MB as it comes
    events = [*history([Change("machine", "F-17", ("赤い荷役車", "", ["all-staff"], "1.50"))]), large, huge]
    settings = {"source_topics": f"^{foreign[:-4]}", "max_chunks": 9_000}
    worker = stack.start(**settings)
    await publish(stack, events[:1], topic=foreign)
    await publish(stack, events[1:])
    stranger = RawEvent(value=b'{"document": 7}')
    await publish(stack, [stranger], topic=stack.topics.records.name)
    await stack.settled(worker, seconds=240)
    assert await stack_digest(stack) != {}
    async with open_stack_stores(stack.settings, {}) as stores:
        manifests = await stores.state.manifests("g1", ["dms/reports/large", "dms/reports/huge", "erp/equipment/F-17"])
        assert {name: m.op for name, m in manifests.items()} == dict.fromkeys(manifests, "upsert")
        assert len(manifests) == 3
        letters = await stores.state.dead_letters()
        assert [(one.code, one.payload) for one in letters] == [("not_a_record", stranger.value)]
    (dead,) = await stack.read_dead_letters()
    assert dead[2]["shinsen-code"] == b"not_a_record"
    timed = set()
    for document, _, headers in await stack.read(stack.topics.outcomes.name, stack.settings.partitions):
        if ARRIVED not in headers:  # what takes longer than the sweep's patience it announces too, without times
            continue
        times = [datetime.datetime.fromisoformat(headers[h].decode()) for h in (ARRIVED, RECONCILED, APPLIED)]
        assert times == sorted(times)
        timed.add(document)
    assert timed == {name.encode() for name in manifests}


def _report(key: str, body: str) -> RawEvent:
    event = {
        "source": "dms",
        "collection": "reports",
        "key": key,
        "position": 5,
        "record": {"title": key, "body": body},
    }
    return RawEvent(value=json.dumps(event, ensure_ascii=False).encode())
