"""A worker that is told to stop is gone soon, even while a store is away; the next one does what it had begun."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ops.stack.ports import choose
from ops.stack.server import Endpoint
from pipeline.agents.__main__ import STOP_S
from pipeline.stack_wiring import open_stack_stores
from tests.faults.arrivals import messages
from tests.faults.ends import check_outcomes
from tests.faults.stream import stream as seeded
from tests.stack.test_same_digest import publish
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(400)]


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


async def test_a_worker_that_waits_for_a_store_ends_when_told(stack: Stack) -> None:
    nowhere = f"http://127.0.0.1:{choose(['http'], ())['http']}/ds"
    worker = stack.start(sparql=nowhere)
    await publish(stack, messages(seeded(3, 20)[1]))
    async with asyncio.timeout(120):
        while "stage_paused" not in stack.log.read_text(errors="replace"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)
    began = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 3 * STOP_S) in (0, 1), stack.tail()
    assert time.monotonic() - began < STOP_S + 10
    await stack.settled(stack.start(), seconds=150)
    async with open_stack_stores(stack.settings, {}) as stores:
        assert await check_outcomes(stack, stores) >= 20
