"""The faults: each does its worst and returns when the thing is back, or when others have taken over."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from ops.stack import servers
from tests.faults.fleet import Fleet, Worker

DECK = (
    *["kill"] * 8,
    *["term"] * 4,
    *["rebalance"] * 6,
    *["pause"] * 3,
    *["kafka"] * 2,
    *["weaviate"] * 2,
    *["sparql"] * 2,
    *["postgres"] * 2,
    "everything",
)
"""Thirty faults."""
PAUSED_S = (11.5, 15.0)
"""Longer than the workers' session time-out of 10 s: whoever is silent so long has lost its partitions."""
MOST_WORKERS = 3
ENDINGS = {"postgres": (signal.SIGKILL, signal.SIGINT, signal.SIGQUIT)}
"""How servers are stopped; all others by kill -9 or SIGTERM."""


def dealt(seed: int, number: int, hand: int) -> list[str]:
    """Return the faults of a round: all of the deck, shuffled, before any comes a second time."""
    kinds: list[str] = []
    for deck in range(number * hand // len(DECK), (number + 1) * hand // len(DECK) + 1):
        kinds += random.Random(f"{seed} deck {deck}").sample(DECK, len(DECK))
    start = number * hand % len(DECK)
    return kinds[start : start + hand]


class Faults:
    """Injects, and counts what was injected."""

    def __init__(self, fleet: Fleet, folder: Path, sparql: str, chance: random.Random, down_s: float) -> None:
        self.fleet, self.folder, self.sparql = fleet, folder, sparql
        self.chance, self.down_s = chance, down_s
        self.done: Counter[str] = Counter()

    async def inject(self, kind: str) -> None:
        """Do one fault of a kind of `DECK`."""
        own: dict[str, Callable[[], Awaitable[str]]] = {
            "kill": self._kill,
            "term": self._term,
            "rebalance": self._rebalance,
            "pause": self._pause,
            "everything": self._everything,
        }
        said = await (own[kind]() if kind in own else self._server(self.sparql if kind == "sparql" else kind))
        self.done[said] += 1

    async def _worker(self) -> Worker:
        """Take a worker out of the fleet, as soon as one runs."""
        async with asyncio.timeout(60):
            while (worker := self.fleet.take()) is None:  # noqa: ASYNC110 - processes are polled
                await asyncio.sleep(0.05)
        return worker

    async def _kill(self) -> str:
        await self.fleet.kill(await self._worker())
        return "worker killed by SIGKILL"

    async def _term(self) -> str:
        await self._told_to_end(await self._worker())
        return "worker ended by SIGTERM"

    async def _told_to_end(self, worker: Worker) -> None:
        code = await self.fleet.terminate(worker)
        if code == 1:
            self.fleet.ended["exit code 1"] += 1  # it was ending by itself when it was told to
            return
        # Before its handler is there SIGTERM ends it like any process.
        assert code in (0, -signal.SIGTERM), f"exit code {code} after SIGTERM:\n{self.fleet.stack.tail()}"

    async def _rebalance(self) -> str:
        most = self.fleet.wanted >= MOST_WORKERS
        if self.fleet.wanted == 1 or (not most and self.chance.random() < 0.5):
            self.fleet.wanted += 1
            return "worker joined"
        self.fleet.wanted -= 1
        await self._told_to_end(await self._worker())
        return "worker left"

    async def _pause(self) -> str:
        """Stop an owner in the middle of its work until others own what it owned, then let it write on."""
        self.fleet.wanted = max(2, self.fleet.wanted)
        worker = await self._worker()
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self.chance.uniform(*PAUSED_S))
        worker.send_signal(signal.SIGCONT)
        self.fleet.workers.append(worker)
        return "worker paused beyond its session"

    async def _server(self, name: str) -> str:
        number = self.chance.choice(ENDINGS.get(name, (signal.SIGKILL, signal.SIGTERM)))
        await asyncio.to_thread(servers.kill, name, self.folder, number)
        await asyncio.sleep(self.chance.uniform(0.5, 1) * self.down_s)
        await asyncio.to_thread(servers.start, [name], self.folder)
        return f"{name} stopped and started"

    async def _everything(self) -> str:
        names = ("kafka", "weaviate", self.sparql, "postgres")
        wanted, self.fleet.wanted = self.fleet.wanted, 0
        for name in self.chance.sample(names, len(names)):
            await asyncio.to_thread(servers.kill, name, self.folder)
        await self.fleet.kill_all()
        await asyncio.to_thread(servers.start, names, self.folder)
        self.fleet.wanted = wanted
        return "everything killed and started"
