"""Vectors of sentences on the stack: they come beside the messages, and outlive a killed worker."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ops.stack.server import Endpoint
from pipeline.stack_wiring import StackStores, open_stack_stores
from tests.differential.events import Change, history
from tests.differential.running import MAPPINGS
from tests.stack.test_workers import embedded_digest, publish, stack_digest
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
REPORTS = 12


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "oxigraph", tmp_path)
    stack.settings = stack.settings.model_copy(update={"mappings": MAPPINGS})
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


async def having(stores: StackStores) -> set[str]:
    """Return the documents whose passages have vectors of both of their sentences."""
    return {one.document async for one in stores.chunks.scan() if one.vector and len(one.sentence_vectors) == 2 * 384}


async def test_they_come_when_nothing_else_waits_also_after_a_worker_was_killed(stack: Stack, tmp_path: Path) -> None:
    texts = [f"荷を降ろした。{n}号の弁を開けた。" for n in range(REPORTS)]
    events = history([Change("report", f"r{n}", ((text,), ["all-staff"], "田中")) for n, text in enumerate(texts)])
    first = stack.start(sentence_vectors=True, stub_delay=0.5)
    await publish(stack, events)
    await stack.settled(first)
    async with open_stack_stores(stack.settings, {}) as stores:
        async with asyncio.timeout(60):
            while not (some := await having(stores)):  # noqa: ASYNC110 - an index
                await asyncio.sleep(0.2)
        first.send_signal(signal.SIGKILL)
        assert len(some) < REPORTS and await stores.state.unrefined(stores.generation)
        second = stack.start(sentence_vectors=True)
        async with asyncio.timeout(120):
            while await stores.state.unrefined(stores.generation):  # noqa: ASYNC110 - a table
                await asyncio.sleep(0.2)
        await stack.settled(second)
        assert len(await having(stores)) == REPORTS
    assert await stack_digest(stack) == await embedded_digest(tmp_path / "embedded", events)
