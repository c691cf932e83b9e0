"""What a worker costs over the steps that it runs: Faust, Kafka, topics between stages, seeing that nothing is lost.

`python -m ops.bench.stack_overhead [--documents N] [--models stub|real] [--characters N]`. Measurements of one run over
the same servers, each into an installation of its own, with documents of the same make:

- *steps*: this process calls, in batches of 64 and one step after the other, decode, reconcile (records), map, chunk,
  tokenize, mentions, vectors, link, stage, commit, collect and the end of the events, with their own calls to
  PostgreSQL, Weaviate and the SPARQL server. No Kafka, no Faust.
- *worker*: one worker process has the same events before it in its topic, and works until all are announced.

CPU is that of the process and its model processes, wall the time from the first event to the last; both per event.
Overhead = (worker - steps) / steps. A worker's stages work side by side, so its wall may be below that of the steps.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from ops.bench.corpus import event, events
from ops.bench.report import say
from ops.bench.stack_installation import FIRST, Installation, installed, parser, real_servers
from ops.bench.stack_outcomes import cpu_s, following
from ops.stack.server import Endpoint
from pipeline.agents.analyzing import COLD
from pipeline.agents.lane_app import BATCH
from pipeline.apply import Applier
from pipeline.backends.cache_postgres import PostgresCache
from pipeline.decoding import admit
from pipeline.errors import InvalidEvent
from pipeline.prepare import Prepared, Preparer
from pipeline.reconcile import Arrived, Reconciler
from pipeline.stack_wiring import live_generation, open_indexes, open_state
from pipeline.steps.chunk import ChunkLimits
from pipeline.wiring import Configuration, open_models
from schemas.change_event import RawEvent

GOAL = 0.25
LIMIT_S = 1800.0
WARM_UP = 2 * BATCH
IDLE_S = 6.0
Cost = tuple[float, float]
"""CPU and wall, seconds an event."""


class Steps:
    """The steps of a worker, called one after the other."""

    def __init__(self, one: Installation) -> None:
        self._one, self._resources = one, AsyncExitStack()
        self._count = 0

    async def __aenter__(self) -> "Steps":
        settings, stack = self._one.settings, self._resources
        self._configuration = configuration = Configuration(settings)
        analyzer, embedder = await stack.enter_async_context(open_models(settings, configuration.lexicon))
        state = await stack.enter_async_context(open_state(settings))
        await live_generation(state, {})
        cache = PostgresCache(settings.postgres)
        stack.push_async_callback(cache.close)
        indexes = open_indexes(settings, FIRST)
        stack.push_async_callback(indexes.close)
        self._preparer = Preparer(
            configuration.mappings, configuration.vocabulary, cache, analyzer, embedder, ChunkLimits()
        )
        self._reconciler = Reconciler(state)
        self._applier = Applier(
            FIRST,
            state,
            indexes.chunks,
            indexes.graph,
            configuration.text_facts,
            vector_model=embedder.model,
            announces=True,
            writer="bench",
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._resources.aclose()

    async def run(self, batch: Sequence[bytes]) -> None:
        """Bring a batch of events into every store."""
        arrived = []
        for value in batch:
            found = admit(RawEvent(value=value), self._configuration.mappings, self._one.settings.max_event)
            if isinstance(found, InvalidEvent):
                raise SystemExit(f"the benchmark's own event is refused: {found}")
            self._count += 1
            arrived += [Arrived(f"bench-0-{self._count}", each) for each in found]
        done = await self._reconciler.reconcile(arrived, {"bench-0": self._count})
        prepared = [p for p in await self._preparer.analyzed(done.advanced, "live") if isinstance(p, Prepared)]
        for start in range(0, len(prepared), COLD):
            await self._preparer.mention(prepared[start : start + COLD], "live")
        await self._preparer.with_cached_vectors(prepared)
        for start in range(0, len(prepared), COLD):
            await self._preparer.embed(prepared[start : start + COLD], "live")
            await self._applier.publish(prepared[start : start + COLD])


def made(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return events to warm up with, and events to measure."""
    warm = [event(10**6 + n, arguments.seed, characters=arguments.characters) for n in range(WARM_UP)]
    return warm, list(events(arguments.documents, arguments.seed, characters=arguments.characters))


async def steps(at: Mapping[str, Endpoint], arguments: argparse.Namespace, folder: Path, given: dict[str, Any]) -> Cost:
    """Return what the steps cost an event."""
    warm, measured = ([msgspec.json.encode(item) for item in items] for items in made(arguments))
    async with installed(at, arguments, folder, **given) as one, Steps(one) as run:
        for start in range(0, len(warm), BATCH):
            await run.run(warm[start : start + BATCH])
        spent, started = cpu_s(os.getpid()), time.perf_counter()
        for start in range(0, len(measured), BATCH):
            await run.run(measured[start : start + BATCH])
        wall = time.perf_counter() - started
        return _cost("steps", cpu_s(os.getpid()) - spent, wall, len(measured))


async def worker(
    at: Mapping[str, Endpoint], arguments: argparse.Namespace, folder: Path, given: dict[str, Any]
) -> Cost:
    """Return what a worker costs an event."""
    warm, measured = made(arguments)
    async with installed(at, arguments, folder, **given) as one, following(one) as ends:
        running = await one.worker()
        await one.publish(warm)
        await ends.until(len(warm), LIMIT_S)
        idle = cpu_s(running.pid)
        await asyncio.sleep(IDLE_S)
        idle = (cpu_s(running.pid) - idle) / IDLE_S
        say(f"a worker with nothing to do: CPU {idle * 1000:.0f} ms a second; that is in its figure below, too")
        spent, started = cpu_s(running.pid), time.perf_counter()
        await one.publish(measured)
        await ends.until(len(warm) + len(measured), LIMIT_S)
        return _cost("worker", cpu_s(running.pid) - spent, ends.last - started, len(measured))


def _cost(what: str, cpu: float, wall: float, count: int) -> Cost:
    say(f"{what}: {count} events, CPU {cpu / count * 1000:.2f} ms and wall {wall / count * 1000:.2f} ms an event")
    return cpu / count, wall / count


async def main() -> int:
    """Measure the steps, the worker, and the steps again."""
    asked = parser(__doc__)
    asked.add_argument("--documents", type=int, default=0, help="1,000 with stub models, 60 with real ones")
    asked.add_argument("--models", choices=("stub", "real"), default="stub")
    asked.add_argument("--characters", type=int, default=380)
    arguments = asked.parse_args()
    real = arguments.models == "real"
    arguments.documents = arguments.documents or (60 if real else 1_000)
    given: dict[str, Any] = {"analyzer": "ginza", "embedder": "auto"} if real else {}
    with real_servers(arguments, f"ops.bench.stack_overhead --models {arguments.models}") as (at, folder):
        before = await steps(at, arguments, folder, given)
        cost = await worker(at, arguments, folder, given)
        after = await steps(at, arguments, folder, given)
    own = [(a + b) / 2 for a, b in zip(before, after, strict=True)]
    over = [(theirs - ours) / ours for theirs, ours in zip(cost, own, strict=True)]
    worst = max(over)
    say(
        f"RATIO overhead over the steps: CPU {over[0]:+.1%}, wall {over[1]:+.1%} (goal <= {GOAL:.0%}): "
        f"{'pass' if worst <= GOAL else 'MISS'}"
    )
    return 0 if worst <= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
