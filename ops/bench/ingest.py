"""Ingest against the bare model calls, replay with warm caches, and change-to-searchable: real models.

`python -m ops.bench.ingest [--documents N] [--updates N] [--seed N]`. All figures come from one run
over one pool of model workers; bare calls are measured before and after, because machines drift.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ops.bench.corpus import event, events
from ops.bench.report import machine, peak_memory_mib, percentile, say, spread
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from schemas.change_event import Lane, RawEvent

WARM_UP = 16


def raw(item: dict[str, Any]) -> RawEvent:
    """Return an event as it would arrive."""
    return RawEvent(value=json.dumps(item, ensure_ascii=False).encode())


async def bare(runtime: EmbeddedRuntime, items: Sequence[dict[str, Any]], lane: Lane) -> float:
    """Return the seconds that analysis and embedding of these texts take with nothing around them."""
    bodies = [item["record"]["body"] for item in items]
    passages = [f"{item['record']['title']}\n{item['record']['body']}" for item in items]
    started = time.perf_counter()
    await asyncio.gather(
        runtime.analyzer.tokens(bodies, lane=lane),
        runtime.analyzer.mentions(bodies, lane=lane),
        runtime.embedder.passages(passages, lane=lane),
    )
    return time.perf_counter() - started


async def ingest(runtime: EmbeddedRuntime, items: Sequence[dict[str, Any]]) -> float:
    """Return the seconds from the first event handed in to everything full."""
    started = time.perf_counter()
    await runtime.submit([raw(item) for item in items])
    await runtime.quiet(3600)
    return time.perf_counter() - started


async def first_load(runtime: EmbeddedRuntime, count: int, seed: int) -> None:
    """Compare a first load with the bare calls over texts of the same kind, and with a replay."""
    await ingest(runtime, list(events(WARM_UP, seed + 900)))
    before = await bare(runtime, list(events(count, seed + 1)), "bulk")
    items = [{**item, "key": f"L-{n}"} for n, item in enumerate(events(count, seed))]
    loaded = await ingest(runtime, items)
    after = await bare(runtime, list(events(count, seed + 2)), "bulk")
    models = (before + after) / 2
    say(
        f"bare model calls for {count} documents: {before:.2f} s before, {after:.2f} s after",
        f"first load of {count} documents to full: {loaded:.2f} s",
        f"RATIO ingest / bare model calls: {loaded / models:.3f} (goal <= 1.15)",
    )
    started = time.perf_counter()
    done = await runtime.replay()
    replayed = (time.perf_counter() - started) * count / done["documents"]
    say(
        f"replay with warm caches, for {count} documents: {replayed:.2f} s ({replayed / count * 1000:.1f} ms each)",
        f"RATIO first load / replay: {loaded / replayed:.1f} (goal >= 20)",
    )


async def updates(runtime: EmbeddedRuntime, count: int, seed: int) -> None:
    """Compare change-to-searchable with the model time of the same document, one document at a time."""
    ratios: list[float] = []
    seconds: list[float] = []
    for n in range(count):
        changed = event(n, seed, characters=380, position=n + 10)
        changed["key"] = "L-0"
        twin = event(n, seed + 5, characters=380, position=n + 10)
        before = await bare(runtime, [twin], "live")
        started = time.perf_counter()
        submission = (await runtime.submit([raw(changed)]))[0]
        await runtime.wait_settled(submission.parts, 120)
        took = time.perf_counter() - started
        after = await bare(runtime, [event(n, seed + 6, characters=380)], "live")
        seconds.append(took)
        ratios.append(took / ((before + after) / 2))
    say(
        f"change to searchable, seconds: {spread(seconds)}",
        f"change to searchable over the document's model time: {spread(ratios)}",
        f"RATIO p95: {percentile(ratios, 0.95):.3f} (goal <= 1.5)",
    )


async def main() -> None:
    """Run all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    say(f"ops.bench.ingest seed {arguments.seed}", machine())
    with tempfile.TemporaryDirectory() as folder:
        async with open_embedded(Settings(data=Path(folder))) as runtime:
            await first_load(runtime, arguments.documents, arguments.seed)
            await updates(runtime, arguments.updates, arguments.seed)
    say(f"peak memory of the main process: {peak_memory_mib():.0f} MiB")


if __name__ == "__main__":
    asyncio.run(main())
