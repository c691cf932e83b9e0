"""One worker, then two: how much faster, where models wait.

`python -m ops.bench.stack_scale [--documents N] [--delay S] [--partitions N]`. Stub models that wait `--delay` seconds
a call, during which other work goes on, as with a model elsewhere: a worker calls them with up to eight documents.
Throughput: events over the seconds from the first one published to the last one announced. Both figures are of
one run, over the same servers; each number of workers has an installation of its own. With few documents the
seconds in which the stages fill and empty weigh as much as the work: 600 take a worker a minute.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from ops.bench.corpus import event, events
from ops.bench.report import say
from ops.bench.stack_installation import installed, parser, real_servers
from ops.bench.stack_outcomes import cpu_s, following
from ops.stack.server import Endpoint

GOAL = 1.7
LIMIT_S = 1800.0
WARM_UP = 16


async def throughput(at: Mapping[str, Endpoint], arguments: argparse.Namespace, folder: Path, workers: int) -> float:
    """Return events a second with so many workers."""
    given = {"stub_delay": arguments.delay, "partitions": arguments.partitions}
    async with installed(at, arguments, folder, **given) as one, following(one) as ends:
        running = [await one.worker(number + 1) for number in range(workers)]
        await one.publish(event(10**6 + n, arguments.seed, characters=arguments.characters) for n in range(WARM_UP))
        await ends.until(WARM_UP, LIMIT_S)
        spent = sum(cpu_s(worker.pid) for worker in running)
        started = time.perf_counter()
        await one.publish(events(arguments.documents, arguments.seed, characters=arguments.characters))
        await ends.until(WARM_UP + arguments.documents, LIMIT_S)
        seconds = ends.last - started
        spent = sum(cpu_s(worker.pid) for worker in running) - spent
        rate: float = arguments.documents / seconds
        say(
            f"{workers} worker(s): {arguments.documents} events in {seconds:.1f} s, {rate:.1f} events/s; "
            f"CPU of the workers {spent / arguments.documents * 1000:.1f} ms an event"
        )
        return rate


async def main() -> int:
    """Measure one, then two."""
    asked = parser(__doc__)
    asked.add_argument("--documents", type=int, default=1500)
    asked.add_argument("--characters", type=int, default=380)
    asked.add_argument("--delay", type=float, default=0.8)
    asked.add_argument("--partitions", type=int, default=4)
    arguments = asked.parse_args()
    with real_servers(arguments, "ops.bench.stack_scale") as (at, folder):
        say(f"stub models wait {arguments.delay} s a call; {arguments.partitions} partitions")
        rates = [await throughput(at, arguments, folder, workers) for workers in (1, 2)]
    ratio = rates[1] / rates[0]
    say(f"RATIO two workers / one: {ratio:.2f} (goal >= {GOAL}): {'pass' if ratio >= GOAL else 'MISS'}")
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
