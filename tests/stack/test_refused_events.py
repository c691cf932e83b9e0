"""Events that no waiting makes good, on one partition: each is put aside, and what comes after them is indexed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from ops.stack.server import Endpoint
from pipeline.stack_wiring import open_stack_stores
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(200)]
Sent = tuple[bytes, list[tuple[str, bytes]]]
"""Value and headers."""
KANJI = "\U00020089"
"""Four bytes of UTF-8; 512 of them do not fit into a row of an index of PostgreSQL."""


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


def native(key: str, **more: object) -> bytes:
    event = {"source": "dms", "collection": "reports", "key": key, "op": "upsert", "position": 1}
    return json.dumps(event | {"record": {"title": "報告", "body": "本文"}} | more, ensure_ascii=False).encode()


async def publish(stack: Stack, messages: list[Sent]) -> list[str]:
    """Send to partition 0 of `events`; return the ids."""
    topic = stack.topics.events.name
    async with AIOKafkaProducer(bootstrap_servers=stack.settings.kafka, acks="all") as producer:
        sent = [await producer.send_and_wait(topic, v, key=b"k", partition=0, headers=h) for v, h in messages]
    return [f"{topic}-0-{one.offset}" for one in sent]


async def test_headers_and_keys_that_the_state_store_never_takes(stack: Stack) -> None:
    worker = stack.start()
    [bad] = await publish(stack, [(b"not json", [])])
    await stack.settled(worker)
    async with open_stack_stores(stack.settings, {}) as stores:
        (letter,) = await stores.state.dead_letters()
        ids = await publish(
            stack,
            [
                (native("a"), [("shinsen-event", b"\x00"), ("shinsen-letter", b"a\x00b")]),
                (native("b"), [("shinsen-event", bad.encode())]),  # another's event
                (native("c"), [("shinsen-event", b"x-0-1"), ("shinsen-letter", letter.id.encode())]),
                (native("d"), [("shinsen-event", bad.encode()), ("shinsen-letter", b"0" * 24)]),
                (native(KANJI * 512), []),
                (native("\x00"), []),
                (native("e", record={"title": "報告\x00", "body": "本文\x00"}, type="\x00"), []),
                (native("f"), []),
            ],
        )
        await stack.settled(worker)
        known = await stores.state.outcomes([bad, *ids])
        assert known[bad] == "dead_letter", "nobody else's event ended it"
        names = dict(zip("abcdLNef", (known[event] for event in ids), strict=True))
        assert names["e"] in ("applied", "dead_letter")
        del names["e"]
        assert names == dict.fromkeys("abcdf", "applied") | dict.fromkeys("LN", "dead_letter")
        assert letter.id in [one.id for one in await stores.state.dead_letters()], "it was not tried again"
        await publish(stack, [(native("g"), [("shinsen-event", bad.encode()), ("shinsen-letter", letter.id.encode())])])
        await stack.settled(worker)
        assert await stores.state.outcomes([bad]) == {bad: "applied"}
        assert letter.id not in [one.id for one in await stores.state.dead_letters()]
    assert worker.poll() is None and "worker_failed" not in stack.log.read_text()
