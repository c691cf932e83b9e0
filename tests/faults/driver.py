"""The process that is killed: `python -m tests.faults.driver FOLDER SEED LENGTH START REPLAY`.

Opens the embedded runtime over the folder and submits the seeded stream from START on. On stdout:
`ready`, `ack N EVENT...` when events up to N (excluded) are accepted, `quiet` when all work is done.
SIGTERM ends it in order, as it ends the server.
"""

import asyncio
import contextlib
import random
import signal
import sys
from pathlib import Path

from pipeline.embedded.runtime import EmbeddedRuntime
from tests.differential.running import running
from tests.faults.stream import stream

STUB_DELAY = 0.002
"""Seconds of model work per text, so that kills meet every stage."""


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def submit(runtime: EmbeddedRuntime, seed: int, length: int, start: int) -> None:
    _, arriving = stream(seed, length)
    chance = random.Random(seed + start)
    while start < len(arriving):
        batch = arriving[start : start + chance.randint(1, 6)]
        submissions = await runtime.submit(batch)
        start += len(batch)
        say("ack", start, *(s.event for s in submissions if s.event))
        await asyncio.sleep(chance.uniform(0, 0.03))


async def work(folder: Path, seed: int, length: int, start: int, replay: bool) -> None:
    async with running(folder, stub_delay=STUB_DELAY) as runtime:
        say("ready")
        rebuild = asyncio.create_task(runtime.replay()) if replay else None
        await submit(runtime, seed, length, start)
        if rebuild is not None:
            await rebuild
        await runtime.quiet(120)
        say("quiet")


async def main() -> None:
    folder, seed, length, start, replay = sys.argv[1:]
    task = asyncio.create_task(work(Path(folder), int(seed), int(length), int(start), replay == "1"))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


if __name__ == "__main__":
    asyncio.run(main())
