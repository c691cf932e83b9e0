"""Collecting batches and waiting for stores, without Kafka. What only a broker can show is in tests/stack."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pipeline.agents.batches import batches, growing_pauses, persist
from pipeline.errors import BackendUnavailable


class Source:
    """Stands for a Faust stream: `noack().events()`."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[int | Exception | None] = asyncio.Queue()

    def noack(self) -> "Source":
        return self

    async def events(self) -> AsyncIterator[int]:
        while (item := await self.queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


def filled(*items: int | Exception | None) -> Source:
    source = Source()
    for item in items:
        source.queue.put_nowait(item)
    return source


async def test_batches_are_full_or_end_with_a_pause_and_keep_the_order() -> None:
    source = filled(*range(7))
    found = []
    async for batch in batches(source, 3, 0.02):
        found.append(batch)
        if len(found) == 3:
            source.queue.put_nowait(7)
            source.queue.put_nowait(None)
    assert found == [[0, 1, 2], [3, 4, 5], [6], [7]]


async def test_a_pause_loses_no_event() -> None:
    source = filled(0)
    taken: list[int] = []

    async def take() -> None:
        async for batch in batches(source, 64, 0.001):
            taken.extend(batch)

    task = asyncio.create_task(take())
    for n in range(1, 30):
        await asyncio.sleep(0.002)
        source.queue.put_nowait(n)
    source.queue.put_nowait(None)
    await task
    assert taken == list(range(30))


async def test_an_error_of_the_stream_gets_out() -> None:
    with pytest.raises(ValueError, match="broken"):
        async for _ in batches(filled(1, ValueError("broken")), 64, 0.01):
            pass


async def test_a_store_that_is_down_is_waited_for_but_not_for_ever() -> None:
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise BackendUnavailable("down")

    await persist(work, iter([0, 0, 0]))
    assert tries == 4
    tries = -100
    with pytest.raises(BackendUnavailable):
        await persist(work, iter([0, 0, 0]))
    assert tries == -96


async def test_a_bug_is_not_tried_again() -> None:
    async def work() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        await persist(work, iter([0]))


def test_pauses_grow_up_to_some_minutes_together() -> None:
    pauses = list(growing_pauses())
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.2, 30.0)
    assert 240 < sum(pauses) < 360
