"""What Faust's other thread fetched before a seek back to what is committed, and what comes out after it.

The fetch and the seek are stand-ins: on a real broker this is a matter of milliseconds (tests/faults meets it
by chance).
"""

import asyncio
from typing import Any

import pytest
from faust.transport.consumer import Consumer as AnyConsumer
from faust.transport.drivers.aiokafka import Consumer

from pipeline.agents.consumer import InOrderConsumer

PLACE = ("events", 1)


class Broker:
    """One partition, and where the consumer stands in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.position, self.seeks = 28, 0
        self.fetched, self.arrive = asyncio.Event(), asyncio.Event()
        self.consumer = InOrderConsumer.__new__(InOrderConsumer)
        self.consumer.flow_active = True
        self.consumer._committed_offset = {PLACE: 25}  # type: ignore[dict-item]
        monkeypatch.setattr(Consumer, "_getmany", self.fetch)
        monkeypatch.setattr(Consumer, "perform_seek", self.seek)
        monkeypatch.setattr(Consumer, "assignment", lambda _: {PLACE})
        monkeypatch.setattr(Consumer, "getmany", self.hand_out)
        monkeypatch.setattr(Consumer, "seek_wait", self.seek_to)

    async def fetch(self, *_: Any) -> dict[Any, list[int]]:
        found = {PLACE: [self.position, self.position + 1]}
        self.position += 2
        self.fetched.set()
        await self.arrive.wait()
        return found

    async def seek(self, *_: Any) -> None:
        """As aiokafka does it: without a committed offset the position stays."""
        committed = self.consumer._committed_offset[PLACE]  # type: ignore[index]
        self.position, self.seeks = committed or self.position, self.seeks + 1

    async def seek_to(self, places: dict[Any, int]) -> None:
        self.position = places[PLACE]

    async def hand_out(self, *_: Any) -> Any:
        for offset in (await self.consumer._getmany(None, 1.0)).get(PLACE, []):
            yield PLACE, offset


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return Broker(monkeypatch)


async def offsets(broker: Broker) -> list[int]:
    return [offset async for _, offset in broker.consumer.getmany(1.0)]


async def test_what_was_fetched_before_a_seek_is_fetched_again_from_there(broker: Broker) -> None:
    reading = asyncio.create_task(offsets(broker))
    await broker.fetched.wait()
    await broker.consumer.perform_seek()
    broker.arrive.set()
    assert await reading == [], "28 came from behind what the seek goes back to"
    assert await offsets(broker) == [25, 26]


async def test_a_partition_of_which_nothing_is_committed_is_read_from_its_beginning(broker: Broker) -> None:
    broker.consumer._committed_offset = {PLACE: None}  # type: ignore[dict-item]
    reading = asyncio.create_task(offsets(broker))
    await broker.fetched.wait()
    await broker.consumer.perform_seek()
    broker.arrive.set()
    assert await reading == []
    assert await offsets(broker) == [0, 1]


async def test_a_seek_while_a_message_is_handed_out_makes_the_rest_useless(broker: Broker) -> None:
    broker.arrive.set()
    seen = []
    async for _, offset in broker.consumer.getmany(1.0):
        seen.append(offset)
        await broker.consumer.perform_seek()
    assert seen == [28]
    assert broker.seeks == 2, "once more, since the place is noted when the message has been taken"
    assert await offsets(broker) == [25, 26]


async def test_while_the_flow_stands_faust_seeks_by_itself(broker: Broker) -> None:
    reading = asyncio.create_task(broker.consumer._getmany(None, 1.0))
    await broker.fetched.wait()
    await broker.consumer.perform_seek()
    broker.consumer.flow_active = False
    broker.arrive.set()
    assert await reading == {PLACE: [28, 29]}
    assert broker.seeks == 1


def test_what_is_mended_is_still_there() -> None:
    """Another version of Faust may have other names: then this module must be looked at."""
    assert all(hasattr(AnyConsumer, name) for name in ("_new_offset", "perform_seek", "getmany", "_getmany"))
