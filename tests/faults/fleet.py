"""Workers kept running as a supervisor would keep them: one that ends is started again, and counted."""

import asyncio
import random
import signal
import subprocess
import time
from collections import Counter

from tests.stack.worker import Stack

Worker = subprocess.Popen[bytes]
WRONG_CONFIGURATION = 2
RESTART_PAUSE_S = 0.5
TERM_WAIT_S = 90.0
"""A worker finishes its batch when told to stop, and may have to wait for a store."""
LISTENS_S = 20.0
"""From its start until a worker listens to signals, on a busy machine."""


class Fleet:
    """As many workers as wanted."""

    def __init__(self, stack: Stack, chance: random.Random) -> None:
        self.stack, self.chance = stack, chance
        self.wanted = 1
        self.workers: list[Worker] = []
        self.ended: Counter[str] = Counter()
        """How workers ended that nobody had told to."""
        self._started = time.monotonic()
        """When the youngest was."""

    async def supervise(self) -> None:
        """Until cancelled."""
        while True:
            for worker in [w for w in self.workers if w.poll() is not None]:
                self.workers.remove(worker)
                self.ended[f"exit code {worker.returncode}"] += 1
                if worker.returncode in (0, WRONG_CONFIGURATION):
                    raise AssertionError(f"a worker ended with {worker.returncode} by itself:\n{self.stack.tail()}")
                await asyncio.sleep(RESTART_PAUSE_S)
            while len(self.workers) < self.wanted:
                self.workers.append(self.stack.start())
                self._started = time.monotonic()
            await asyncio.sleep(0.1)

    def take(self, worker: Worker | None = None) -> Worker | None:
        """Take a worker (any) out of the fleet, so that its end is expected; None when none runs just now."""
        running = [w for w in self.workers if w.poll() is None]
        if worker is None and running:
            # The oldest is the one that is at work; others may still be starting.
            worker = running[0] if self.chance.random() < 0.6 else self.chance.choice(running)
        if worker in running:
            self.workers.remove(worker)
            return worker
        return None

    async def kill(self, worker: Worker) -> None:
        """kill -9."""
        worker.send_signal(signal.SIGKILL)
        await asyncio.to_thread(worker.wait, 30)

    async def terminate(self, worker: Worker) -> int:
        """SIGTERM, and its exit code."""
        worker.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(worker.wait, TERM_WAIT_S)

    async def stop(self) -> list[int]:
        """End all workers in order; return their exit codes."""
        self.wanted = 0
        # One that was started a moment ago does not listen to signals yet.
        await asyncio.sleep(max(0.0, self._started + LISTENS_S - time.monotonic()))
        leaving = [worker for worker in iter(self.take, None) if worker is not None]
        return list(await asyncio.gather(*(self.terminate(worker) for worker in leaving)))

    async def kill_all(self) -> None:
        """kill -9 of every worker at once."""
        for worker in [w for w in iter(self.take, None) if w is not None]:
            await self.kill(worker)
