"""What the standing check of manifests against the indexes costs.

`python -m ops.bench.stack_verification [--documents N] [--sparql oxigraph]`. Stub models; the documents, of some 1,200
characters, go through a worker, which is stopped then. The check runs in this process as a worker's sweep runs it: all
pages of 1,000 documents, several rounds.
"""

import argparse
import asyncio
import time

from ops.bench.corpus import events
from ops.bench.report import say
from ops.bench.stack_installation import Installation, installed, parser, real_servers
from ops.bench.stack_outcomes import Spent, following
from pipeline.agents.verifying import PAGE, Verification
from pipeline.stack_wiring import open_stack_stores

ROUNDS = 4
CHARACTERS = 1_200
LIMIT_S = 1800.0


async def load(one: Installation, arguments: argparse.Namespace) -> None:
    """Bring the documents into the first generation."""
    worker = await one.worker()
    async with following(one) as ends:
        await one.publish(events(arguments.documents, arguments.seed, characters=CHARACTERS))
        await ends.until(arguments.documents, LIMIT_S)
    await one.stop(worker)


async def measured(one: Installation, documents: int) -> int:
    """Say what 1,000 documents take; return how many were broken, of which there should be none."""
    broken, per = 0, documents / 1_000
    async with open_stack_stores(one.settings, {}) as stores:
        say(f"contents: {documents} documents, {await stores.chunks.count()} chunks")
        check = Verification(stores.generation, stores.state, stores.chunks, stores.graph, round_every_s=0)
        for number in range(1, ROUNDS + 1):
            spent, own, started = Spent({}, one), time.process_time(), time.perf_counter()
            for _ in range(documents // PAGE + 1):  # the last one ends the round
                broken += await check.look()
            ms, own_ms = ((now - was) * 1_000 / per for now, was in zip(_clocks(), (started, own), strict=True))
            say(f"round {number}: {ms:.0f} ms for 1,000 documents; processor time: own {own_ms:.0f}, {spent.by(per)}")
    say(f"documents broken: {broken}")
    return broken


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


async def main() -> int:
    """Load, then check."""
    asked = parser(__doc__)
    asked.add_argument("--documents", type=int, default=3_000)
    arguments = asked.parse_args()
    with real_servers(arguments, "ops.bench.stack_verification") as (at, folder):
        async with installed(at, arguments, folder) as one:
            await load(one, arguments)
            return min(1, await measured(one, arguments.documents))


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
