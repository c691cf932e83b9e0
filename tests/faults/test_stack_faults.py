"""The stack under load while everything fails in turn: nothing is lost, nothing happens twice.

Rounds of ten faults. A round has an installation of its own, and repeats by its number and the seed alone:
SHINSEN_SEED=20250708 SHINSEN_ROUNDS=7 pytest tests/faults/test_stack_faults.py
SHINSEN_ROUNDS names rounds (`3`, `0-19`; default 0-2, which is each kind of the deck), SHINSEN_DOWN how many seconds
a server stays away (default 3).
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ops.stack.server import Endpoint
from pipeline.digest import digest
from pipeline.stack_wiring import StackStores, open_stack_stores
from tests.differential.running import MAPPINGS, MAX_EVENT, running, scratch
from tests.faults.arrivals import Trickle, seeded
from tests.faults.contents import Contents, contents, differences
from tests.faults.ends import check_dead_letters, check_outcomes, ended, quiet, told
from tests.faults.fleet import Fleet
from tests.faults.injection import Faults, dealt
from tests.stack.worker import Stack

SEED = int(os.environ.get("SHINSEN_SEED", "20250708"))
DOWN_S = float(os.environ.get("SHINSEN_DOWN", "3"))
FIRST, _, LAST = os.environ.get("SHINSEN_ROUNDS", "0-2").partition("-")
ROUNDS = range(int(FIRST), int(LAST or FIRST) + 1)
HAND = 10
"""Faults of a round."""
PER_FAULT = 12
"""Events that trickle in around each fault."""
STUB_DELAY = 0.02
"""Seconds of model work per text, so that faults meet every stage."""
PROGRESS_S = 30.0
SURVIVED: Counter[str] = Counter()

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(1500)]


@pytest.mark.parametrize("number", ROUNDS)
async def test_faults_under_load_end_with_the_digest_of_a_clean_run(
    number: int, breakable_server: Callable[[str], Endpoint], tmp_path: Path
) -> None:
    print(f"\nto repeat: SHINSEN_SEED={SEED} SHINSEN_DOWN={DOWN_S:g} SHINSEN_ROUNDS={number} pytest -s {__file__}")
    sparql = ("fuseki", "oxigraph")[number % 2]
    stack = Stack(breakable_server, sparql, tmp_path)
    stack.settings = stack.settings.model_copy(
        update={"mappings": MAPPINGS, "max_event": MAX_EVENT, "stub_delay": STUB_DELAY}
    )
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    folder = breakable_server("kafka").home.parent
    try:
        await Round(number, stack, folder, sparql).run()
    finally:
        stack.end()
        await stack.remove()


class Round:
    """One round on one installation."""

    def __init__(self, number: int, stack: Stack, folder: Path, sparql: str) -> None:
        self.number, self.stack, self.began = number, stack, time.monotonic()
        chance = random.Random(f"{SEED} round {number}")
        self.kinds, self.chance = dealt(SEED, number, HAND), chance
        self.fleet = Fleet(stack, chance)
        self.faults = Faults(self.fleet, folder, sparql, chance, DOWN_S)
        self.ordered, arriving = seeded(SEED + number, HAND * PER_FAULT)
        kafka, topic = stack.settings.kafka, stack.topics.events.name
        self.load = Trickle(kafka, topic, arriving, SEED + number)

    async def run(self) -> None:
        """Inject all faults under load, let it settle, and look."""
        await self.under_load()
        async with open_stack_stores(self.stack.settings, {}) as stores:
            # One that leaves brings the others into a rebalance, in which Faust may not end in time: then it is 1.
            assert set(await self.fleet.stop()) <= {0, 1}, self.stack.tail()
            number = await check_outcomes(self.stack, stores)
            await check_dead_letters(self.stack, stores)
            await self.compare(stores)
            counts = await stores.state.counts(stores.generation)
        mended = Counter({name: number for name, number in counts.items() if name.startswith("repaired.")})
        SURVIVED.update(self.faults.done)
        seconds = time.monotonic() - self.began
        print(f"round {self.number}: {number} events in {seconds:.0f} s; survived {told(self.faults.done)}")
        print(f"workers that ended by themselves and were started again: {told(self.fleet.ended)}")
        print(f"documents that an index had lost and the check put back: {told(mended)}")
        print(f"faults injected and survived so far: {SURVIVED.total()} ({told(SURVIVED)})", flush=True)

    async def under_load(self) -> None:
        """Publish, supervise and inject side by side."""
        async with asyncio.TaskGroup() as tasks:
            supervisor = tasks.create_task(self.fleet.supervise())
            load = tasks.create_task(self.load.run())
            for kind in self.kinds:
                self.load.target += PER_FAULT
                await self.moment()
                began = time.monotonic()
                await self.faults.inject(kind)
                print(f"  {kind} ({time.monotonic() - began:.1f} s), {self.load.sent} sent", flush=True)
            self.load.target = 1 << 30
            await load
            await quiet(self.stack)  # supervised, since a worker may end by itself now, too
            supervisor.cancel()

    async def moment(self) -> None:
        """A seeded moment: any, or one at which work goes on."""
        if self.chance.random() < 0.7:
            begun = await ended(self.stack)
            end = time.monotonic() + PROGRESS_S  # recovering from several faults at once may take longer
            while await ended(self.stack) <= begun and time.monotonic() < end:  # noqa: ASYNC110 - counted by another process
                await asyncio.sleep(0.1)
        await asyncio.sleep(self.chance.uniform(0, 1.5))

    async def compare(self, stores: StackStores) -> None:
        """Hold the digest against that of the embedded profile, which saw the events in order and nothing else."""
        here = await digest(stores.state, stores.generation, stores.chunks, stores.graph)
        clean, held = await clean_run(self)
        if here != clean:
            found = await contents(stores.state, stores.generation, stores.chunks, stores.graph)
            wrong = sorted(part for part in clean if here[part] != clean[part])
            pytest.fail(f"{', '.join(wrong)} differ from the clean run:\n{differences(found, held)}")


async def clean_run(one: Round) -> tuple[dict[str, str], Contents]:
    """Return digest and contents of the embedded profile after the same events in order."""
    with scratch() as folder:
        async with running(folder) as runtime:
            await runtime.submit(one.ordered)
            clean = await runtime.digest()
            async with runtime.live() as indexes:
                held = await contents(runtime.state, indexes.generation, indexes.chunks, indexes.graph)
    return clean, held
