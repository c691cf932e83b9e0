"""One truth in two profiles: the stack ends with the digest of the embedded profile, both read back from the stores.

SHINSEN_HISTORIES sets how many random histories (default 3), SHINSEN_SEED the seed.
"""

import asyncio
import json
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from ops.demo_check import steps
from ops.demo_load import demo_events, demo_settings
from ops.stack.server import Endpoint
from pipeline.decoding import admit
from pipeline.digest import digest
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from pipeline.stack_wiring import StackStores, open_stack_stores
from pipeline.wiring import open_embedded
from schemas.change_event import RawEvent
from tests.differential.events import history
from tests.differential.running import MAPPINGS, MAX_EVENT, running, scratch
from tests.faults.arrivals import Keyed, messages
from tests.faults.contents import contents, differences
from tests.faults.ends import check_outcomes
from tests.faults.stream import arriving, changes
from tests.stack.worker import Stack

HISTORIES = int(os.environ.get("SHINSEN_HISTORIES", "3"))
SEED = int(os.environ.get("SHINSEN_SEED", "20250708"))
LENGTH = 40

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300 + 40 * HISTORIES)]


@pytest.fixture
async def stack(
    request: pytest.FixtureRequest, stack_server: Callable[[str], Endpoint], tmp_path: Path
) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, request.param, tmp_path)
    yield stack
    stack.end()
    await stack.remove()


async def publish(stack: Stack, keyed: Sequence[Keyed]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=stack.settings.kafka, acks="all", linger_ms=5) as producer:
        for key, value in keyed:
            await producer.send(stack.topics.events.name, value, key=key)


async def same(stores: StackStores, runtime: EmbeddedRuntime, what: str) -> None:
    """Hold both digests, and show what differs."""
    here, there = await digest(stores.state, stores.generation, stores.chunks, stores.graph), await runtime.digest()
    if here == there:
        return
    async with runtime.live() as indexes:
        expected = await contents(runtime.state, indexes.generation, indexes.chunks, indexes.graph)
    found = await contents(stores.state, stores.generation, stores.chunks, stores.graph)
    parts = ", ".join(sorted(part for part in here if here[part] != there[part]))
    pytest.fail(f"{what}: {parts} differ from the embedded profile:\n{differences(found, expected)}")


@pytest.mark.parametrize("stack", ["oxigraph"], indirect=True)
async def test_random_histories(stack: Stack) -> None:
    """Each goes on where the last one ended: late, doubled, out of order; now and then a worker is killed."""
    stack.settings = stack.settings.model_copy(update={"mappings": MAPPINGS, "max_event": MAX_EVENT})
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    chance = random.Random(SEED)
    events = history(changes(SEED, LENGTH * HISTORIES))
    workers = [stack.start(), stack.start()]
    with scratch() as folder:
        async with running(folder) as runtime, open_stack_stores(stack.settings, {}) as stores:
            for number in range(HISTORIES):
                part = events[number * LENGTH : (number + 1) * LENGTH]
                await publish(stack, messages(arriving(SEED + number, part)))
                if chance.random() < 0.5:
                    workers[0].send_signal(signal.SIGKILL)
                    workers = [workers[1], stack.start()]
                await runtime.submit(part)
                await stack.settled(*workers, seconds=150)
                await same(stores, runtime, f"SHINSEN_SEED={SEED}, history {number}")
            assert await check_outcomes(stack, stores) >= LENGTH * HISTORIES


@pytest.mark.parametrize("stack", ["fuseki"], indirect=True)
async def test_the_demo_corpus_and_its_change_script(stack: Stack, tmp_path: Path) -> None:
    stack.settings = demo_settings(stack.settings)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    script = [RawEvent(value=json.dumps(event).encode()) for step in steps() for event in step["events"]]
    corpus = demo_events()
    assert len(corpus) > 100 and len(script) > 10
    worker = stack.start()
    settings = demo_settings(Settings(data=tmp_path / "embedded", analyzer="stub", embedder="stub", workers=1))
    async with open_embedded(settings) as runtime, open_stack_stores(stack.settings, {}) as stores:
        for what, events in (("the demo corpus", corpus), ("its change script", script)):
            await publish(stack, keyed(events, runtime))
            await runtime.submit(events)
            await runtime.quiet(120)
            await stack.settled(worker, seconds=150)
            await same(stores, runtime, what)


def keyed(events: Sequence[RawEvent], runtime: EmbeddedRuntime) -> list[Keyed]:
    """Key events by their documents, as the door does."""
    found: list[Keyed] = []
    for event in events:
        decoded = admit(event, runtime.mappings, 4 << 20)
        document = decoded[0].document if isinstance(decoded, list) and decoded else "none"
        found.append((document.encode(), event.value or b""))
    return found
