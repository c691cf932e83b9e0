"""A worker of the stack as a child process, over real servers, and what a test needs to know of it."""

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from ops.stack.server import Endpoint
from pipeline.clock import system_clock
from pipeline.ports.state import State
from pipeline.settings import Settings
from pipeline.stack.lag import Lag, LagReader
from pipeline.stack.signals import StackStages
from pipeline.stack_wiring import open_stack_stores, open_state, stack_topics
from schemas.topics import Topics

Look = Callable[[], Awaitable[Lag]]
Message = tuple[str, bytes | None]
"""Key and value."""
Received = tuple[bytes | None, bytes | None, dict[str, bytes]]
"""Key, value, headers."""


class Stack:
    """One installation of its own on shared servers: topics, database, space."""

    def __init__(self, started: Callable[[str], Endpoint], sparql: str, folder: Path) -> None:
        name = f"t{uuid.uuid4().hex[:10]}"
        weaviate, postgres = started("weaviate"), started("postgres")
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.settings = Settings(
            data=folder,
            analyzer="stub",
            embedder="stub",
            kafka=started("kafka").url,
            postgres=psycopg.conninfo.make_conninfo(postgres.url, dbname=name),
            weaviate=weaviate.url,
            weaviate_grpc=f"{weaviate.host}:{weaviate.ports['grpc']}",
            sparql=started(sparql).url,
            topic_prefix=f"{name}.",
            partitions=2,
            space=name,
        )
        self.log = folder / "worker.log"
        self._workers: list[subprocess.Popen[bytes]] = []

    @property
    def topics(self) -> Topics:
        return stack_topics(self.settings)

    def command(self, name: str, **changed: object) -> "subprocess.Popen[bytes]":
        """Start `python -m pipeline.agents NAME`, its output appended to the log."""
        given = self.settings.model_dump(exclude_defaults=True) | changed
        env = {f"SHINSEN_{key.upper()}": str(value) for key, value in given.items()}
        with self.log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "pipeline.agents", name], env={**os.environ, **env}, stdout=out, stderr=out
            )

    def start(self, **changed: object) -> "subprocess.Popen[bytes]":
        """Start a worker, with other settings if given."""
        worker = self.command("run", **changed)
        self._workers.append(worker)
        return worker

    def end(self) -> None:
        """Kill every worker that still runs."""
        for worker in self._workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL)
            worker.wait(30)

    async def publish(self, messages: Sequence[Message]) -> None:
        """Send messages to the source topic, in order, keyed."""
        async with AIOKafkaProducer(bootstrap_servers=self.settings.kafka, acks="all") as producer:
            for key, value in messages:
                await producer.send_and_wait(self.topics.events.name, value, key=key.encode())

    async def lag(self, stage: str) -> int:
        """Return how many messages a stage's group has not acknowledged, over all generations."""
        async with self._looking() as look:
            return (await look()).of(stage)

    async def committed(self) -> tuple[int, int]:
        """Return how many events there are less what all stages have left, and how many there are."""
        there = sum([await self.length(self.topics.events.name, n) for n in range(self.settings.partitions)])
        async with self._looking() as look:
            return there - sum(stage.lag for stage in (await look()).stages), there

    async def settled(self, *workers: "subprocess.Popen[bytes]", seconds: float = 90) -> None:
        """Wait until every stage has acknowledged all, and nothing is pending; a worker that ended is an error."""
        end = asyncio.get_running_loop().time() + seconds
        async with self._looking() as look, open_state(self.settings) as state:
            while True:
                left = await self._unsettled(look, state)
                if not left:
                    return
                for worker in workers:
                    assert worker.poll() is None, f"the worker ended with {worker.returncode}:\n{self.tail()}"
                assert asyncio.get_running_loop().time() < end, f"left: {left}\n{self.tail()}"
                await asyncio.sleep(0.2)

    async def _unsettled(self, look: "Look", state: State) -> dict[str, object]:
        """Return what is left to do, by stage and generation."""
        found: dict[str, object] = {s.stage: s.lag for s in (await look()).stages if s.lag}
        for one in await state.generations():
            pending = [p.document for p in await state.pending(one.name)] if one.state == "live" else []
            unlooked = await state.unlooked(one.name) if one.state == "live" else []
            found |= {f"{one.name} pending": pending} if pending else {}
            found |= {f"{one.name} unlooked": unlooked} if unlooked else {}
        return found

    @asynccontextmanager
    async def _looking(self) -> "AsyncIterator[Look]":
        reader = LagReader(self.settings.kafka, system_clock)
        stages = StackStages(self.topics, self.settings.topic_prefix, self.settings.partitions)

        async def look() -> Lag:
            async with open_state(self.settings) as state:
                known = [one.name for one in await state.generations()]
            wanted = {(s.name, s.group): s for name in known or ["g1"] for s in stages.of(name)}
            return await reader.read(list(wanted.values()))

        try:
            yield look
        finally:
            await reader.close()

    async def read(self, topic: str, partitions: int) -> list[Received]:
        """Return (key, value, headers) of every message of a topic."""
        all_of = [TopicPartition(topic, n) for n in range(partitions)]
        found: list[Received] = []
        async with AIOKafkaConsumer(bootstrap_servers=self.settings.kafka, auto_offset_reset="earliest") as consumer:
            consumer.assign(all_of)
            left = sum((await consumer.end_offsets(all_of)).values())
            while len(found) < left:
                for messages in (await consumer.getmany(timeout_ms=1_000)).values():
                    found += [(m.key, m.value, dict(m.headers)) for m in messages]
        return found

    async def read_dead_letters(self) -> list[Received]:
        """Return all messages of the topic of dead letters."""
        return await self.read(self.topics.dead_letters.name, self.topics.dead_letters.partitions)

    async def length(self, topic: str, partition: int) -> int:
        """Return how many messages a partition was given."""
        one = TopicPartition(topic, partition)
        async with AIOKafkaConsumer(bootstrap_servers=self.settings.kafka) as consumer:
            return int((await consumer.end_offsets([one]))[one])

    async def remove(self) -> None:
        """Remove from the shared servers what this installation left there."""
        async with open_stack_stores(self.settings, {}) as stores:
            await stores.chunks.drop()
            await stores.graph.drop()
        with psycopg.connect(psycopg.conninfo.make_conninfo(self.settings.postgres, dbname="postgres")) as connection:
            connection.autocommit = True
            name = psycopg.conninfo.conninfo_to_dict(self.settings.postgres)["dbname"]
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.kafka)
        await admin.start()
        try:
            await admin.delete_topics(
                [t for t in await admin.list_topics() if t.startswith(self.settings.topic_prefix)]
            )
        finally:
            await admin.close()

    def tail(self) -> str:
        """Return what the workers wrote last, and before it what went wrong so far."""
        if not self.log.exists():
            return ""
        text = self.log.read_text(errors="replace")
        wrong = [line[:300] for line in text.splitlines() if '"level": "error"' in line or "Error" in line]
        return "\n".join([*wrong[-20:], "...", text[-4_000:]])
