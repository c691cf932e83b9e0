"""What a benchmark of the stack reads from outside: the announcements on `outcomes`, and processes' time and memory."""

import asyncio
import datetime
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiokafka import AIOKafkaConsumer

from ops.bench.stack_installation import Installation
from ops.stack.process import Process
from schemas.outcome import Outcome
from schemas.topics import APPLIED, ARRIVED, RECONCILED

_TICKS = os.sysconf("SC_CLK_TCK")


class End(msgspec.Struct, frozen=True):
    """How one event ended. Times are seconds since 1970, by the headers; `announced` by the message itself."""

    outcome: str
    arrived: float
    reconciled: float
    applied: float
    announced: float
    document: str
    position: str


class Ends:
    """All events that ended since the following began; one event counts once."""

    def __init__(self) -> None:
        self.seen: dict[str, End] = {}
        self.last = time.perf_counter()
        """When the newest was read."""

    async def until(self, count: int, seconds: float) -> None:
        """Wait for so many. Raises TimeoutError when they do not come."""
        async with asyncio.timeout(seconds):
            while len(self.seen) < count:  # noqa: ASYNC110 - polling leaves the reader alone
                await asyncio.sleep(0.02)

    def note(self, event: str, end: End) -> None:
        """Keep the first announcement of an event."""
        self.last = time.perf_counter()
        self.seen.setdefault(event, end)


@asynccontextmanager
async def following(one: Installation) -> AsyncIterator[Ends]:
    """Read the topic of outcomes from its beginning, in the background."""
    ends = Ends()
    async with AIOKafkaConsumer(
        one.topics.outcomes.name, bootstrap_servers=one.settings.kafka, auto_offset_reset="earliest"
    ) as consumer:
        task = asyncio.create_task(_follow(consumer, ends))
        try:
            yield ends
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _follow(consumer: AIOKafkaConsumer, ends: Ends) -> None:
    async for message in consumer:
        outcome = msgspec.json.decode(message.value, type=Outcome)
        headers = dict(message.headers)
        arrived, reconciled, applied = (_seconds(headers.get(name)) for name in (ARRIVED, RECONCILED, APPLIED))
        said = message.timestamp / 1000
        end = End(outcome.outcome, arrived, reconciled, applied, said, outcome.document, outcome.position)
        ends.note(outcome.event, end)


def _seconds(header: bytes | None) -> float:
    return datetime.datetime.fromisoformat(header.decode()).timestamp() if header else float("nan")


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and of all that it started and that still run, in seconds."""
    spent = 0.0
    for one in _tree(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        spent += sum(int(field) for field in fields[11:15]) / _TICKS  # user and system, its own and of ended children
    return spent


class Spent:
    """Processor time since this was made: of our own processes by name, and of the servers."""

    def __init__(self, ours: Mapping[str, Sequence[Process]], one: Installation) -> None:
        self._pids = {name: [each.pid for each in some] for name, some in ours.items()}
        self._pids |= {name: [server.pid] for name, server in one.servers.items()}
        self._before = self._now()

    def _now(self) -> dict[str, float]:
        return {name: sum(map(cpu_s, pids)) for name, pids in self._pids.items()}

    def by(self, count: float) -> str:
        """Return milliseconds for each of so many events, and all together."""
        each = {name: (now - self._before[name]) / count * 1000 for name, now in self._now().items()}
        return ", ".join(f"{name} {ms:.1f}" for name, ms in each.items()) + f"; together {sum(each.values()):.1f}"


def rss_mib(pid: int) -> float:
    """Return the resident memory of a process without its children, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _tree(pid: int) -> Iterable[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found
