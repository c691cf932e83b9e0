"""Memory of a worker over many events: flat, or growing.

`python -m ops.bench.stack_memory [--events N] [--documents N] [--minutes M]`. Stub models, small documents, each
changed again and again; the worker works as fast as it can. Its resident memory (without other processes) is read every
second; compared are the averages of the first and the last third of the events, less a tenth of the first to warm up.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from ops.bench.corpus import event
from ops.bench.report import say
from ops.bench.stack_installation import installed, parser, real_servers
from ops.bench.stack_outcomes import Ends, following, rss_mib

GOAL = 1.05
LIMIT_S = 4 * 3600.0
AHEAD = 4_000
"""Events published and not ended: enough to keep the worker busy, and the topic short."""
BATCH = 1_000
SHOWN = 20
"""Lines of the curve."""


class Sample(msgspec.Struct, frozen=True):
    """The worker's resident memory after so many events."""

    ended: int
    mib: float
    seconds: float


def made(total: int, documents: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield events that change the documents in turn."""
    for number in range(total):
        yield event(number % documents, seed, characters=40, position=1 + number // documents)


async def sampling(pid: int, ends: Ends, samples: list[Sample]) -> None:
    """Read the memory every second, for as long as this task lives."""
    started = time.perf_counter()
    while True:
        samples.append(Sample(len(ends.seen), rss_mib(pid), time.perf_counter() - started))
        await asyncio.sleep(1)


def mean(samples: list[Sample], low: float, high: float) -> float:
    """Return the average memory while between so many events had ended, in MiB."""
    found = [one.mib for one in samples if low <= one.ended <= high]
    return sum(found) / len(found) if found else float("nan")


def shown(samples: list[Sample], total: int) -> None:
    """Print the curve."""
    for step in range(SHOWN + 1):
        at = next((one for one in samples if one.ended >= step * total / SHOWN), samples[-1])
        say(f"  {at.ended:>7} events, {at.seconds:7.0f} s: {at.mib:7.1f} MiB")


async def main() -> int:
    """Publish, sample, compare."""
    asked = parser(__doc__)
    asked.add_argument("--events", type=int, default=5_000)
    asked.add_argument("--documents", type=int, default=1_000)
    asked.add_argument("--minutes", type=float, default=0, help="publish no more after so many; 0: all events")
    arguments = asked.parse_args()
    total = arguments.events
    with real_servers(arguments, "ops.bench.stack_memory") as (at, folder):
        async with installed(at, arguments, folder) as one, following(one) as ends:
            worker = await one.worker()
            samples: list[Sample] = []
            watching = asyncio.create_task(sampling(worker.pid, ends, samples))
            events = list(made(total, arguments.documents, arguments.seed))
            started = time.perf_counter()
            published = 0
            while published < total and not 0 < arguments.minutes * 60 < time.perf_counter() - started:
                await one.publish(events[published : published + BATCH])
                published += len(events[published : published + BATCH])
                await ends.until(published - AHEAD, LIMIT_S)
            total = published
            await ends.until(total, LIMIT_S)
            seconds = time.perf_counter() - started
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    shown(samples, total)
    peak = max(one.mib for one in samples)
    first_third, last_third = mean(samples, total / 30, total / 3), mean(samples, total * 2 / 3, total)
    ratio = last_third / first_third
    say(
        f"{total} events over {arguments.documents} documents in {seconds:.0f} s ({total / seconds:.0f} events/s); "
        f"first third {first_third:.1f} MiB, last third {last_third:.1f} MiB, peak {peak:.1f} MiB",
        f"RATIO memory last third / first third: {ratio:.3f} (goal <= {GOAL}): {'pass' if ratio <= GOAL else 'MISS'}",
    )
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
