"""Replay with warm caches into a new generation, over the slowest store's own rate for the same contents.

`python -m ops.bench.stack_replay [--documents N] [--workers N]`. Stub models, whose results the first load leaves in
the cache, so that the replay does no model work. Before and after it the same contents go straight into each store, one
store after the other, with everything made ready first: see ops/bench/stack_stores.py. The slowest of the three, in
documents a second (the mean of both times), is what the replay is compared with. The replay counts from the command to
the phase `complete`, so with the topics, groups and indexes that it makes.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence

from ops.bench.corpus import events
from ops.bench.report import say
from ops.bench.stack_installation import Installation, installed, parser, real_servers
from ops.bench.stack_outcomes import Spent, following
from ops.bench.stack_stores import Contents, contents, raw_rates
from ops.stack.process import Process
from pipeline.ports.generations import ReplayPlan
from pipeline.ports.state import State
from pipeline.stack.runtime import StackRuntime
from pipeline.stack_wiring import open_stack_runtime

GOAL = 0.40
LIMIT_S = 1800.0


async def load(one: Installation, arguments: argparse.Namespace) -> None:
    """Bring the documents into the first generation, and their analyses and vectors into the cache."""
    async with following(one) as ends:
        started = time.perf_counter()
        await one.publish(events(arguments.documents, arguments.seed))
        await ends.until(arguments.documents, LIMIT_S)
        seconds = ends.last - started
    say(f"first load, caches cold: {arguments.documents} documents in {seconds:.1f} s")


async def replay(runtime: StackRuntime, one: Installation, workers: Sequence[Process], count: int) -> float:
    """Rebuild into a new generation; return documents a second, all in all."""
    spent = Spent({"workers": workers}, one)
    started = time.perf_counter()
    begun = await runtime.replays.start(ReplayPlan(into="new"))
    watching = asyncio.create_task(watch(runtime.state, begun.generation, count))
    status = await runtime.replays.finished(begun.generation, LIMIT_S)
    seconds = time.perf_counter() - started
    done = await watching
    if status.phase != "complete" or status.filled:
        raise SystemExit(f"the replay did not go as it should: {status}")
    first, steady = done
    say(
        f"replay of {count} documents: {seconds:.1f} s, {count / seconds:.1f} documents/s; the first was there after "
        f"{first:.1f} s, from then on {steady:.1f} documents/s; CPU ms a document: {spent.by(count)}"
    )
    return count / seconds


async def watch(state: State, generation: str, count: int) -> tuple[float, float]:
    """Return the seconds until the first documents were there, and documents a second from then to the last."""
    started, first, there = time.perf_counter(), 0.0, 0
    while True:
        await asyncio.sleep(0.5)
        now = await state.standing(generation)
        done = count - now.behind
        if done and not first:
            first, there = time.perf_counter() - started, done
        if first and done >= count:
            return first, (count - there) / max(1e-9, time.perf_counter() - started - first)


def slowest(before: dict[str, float], after: dict[str, float]) -> float:
    """Return the rate of the slowest store, in documents a second."""
    mean = {name: (rate + after[name]) / 2 for name, rate in before.items()}
    for name, rate in mean.items():
        say(f"raw {name}: {rate:.0f} documents/s ({before[name]:.0f} before the replay, {after[name]:.0f} after)")
    return min(mean.values())


async def main() -> int:
    """Load, measure the stores, replay, measure the stores again."""
    asked = parser(__doc__)
    asked.add_argument("--documents", type=int, default=1_500)
    asked.add_argument("--workers", type=int, default=2)
    arguments = asked.parse_args()
    with real_servers(arguments, "ops.bench.stack_replay") as (at, folder):
        async with installed(at, arguments, folder) as one:
            workers = [await one.worker(number + 1) for number in range(arguments.workers)]
            await load(one, arguments)
            held: Contents = await contents(one)
            say(f"contents: {len(held.manifests)} documents, {len(held.chunks)} chunks, {held.facts} facts")
            before = await raw_rates(one, held, arguments.workers)
            async with open_stack_runtime(one.settings) as runtime:
                rate = await replay(runtime, one, workers, arguments.documents)
            after = await raw_rates(one, held, arguments.workers)
    ratio = rate / slowest(before, after)
    say(
        f"RATIO replay / slowest store: {ratio:.2f} with {arguments.workers} workers (goal >= {GOAL}): "
        f"{'pass' if ratio >= GOAL else 'MISS'}"
    )
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
