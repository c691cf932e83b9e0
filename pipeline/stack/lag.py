"""How far each stage is behind, read from Kafka: what its group has acknowledged against what is there."""

import asyncio
import contextlib
import datetime
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from pipeline.clock import Clock, rfc3339
from pipeline.errors import BackendUnavailable
from pipeline.ports.signals import PartitionLag, StageLag
from schemas.topics import ARRIVED

READ_S = 5.0
"""Longest look at all stages; and at a broker that does not answer."""
PEEK_S = 1.0
"""Longest wait for the oldest messages; those that did not come count as having arrived at the last look."""
PEEK_BYTES = 65_536
TRIES, PAUSE_S = 4, 0.1
TOPICS_S = 30.0
"""Seconds after which the numbers of partitions are read again."""


class Stage(msgspec.Struct, frozen=True):
    """A stage of the journey as Kafka knows it."""

    name: str
    group: str
    topics: tuple[str, ...]
    """Names, and regular expressions that begin with ^."""


class Lag(msgspec.Struct, frozen=True):
    """One look at all stages."""

    at: str
    """When it began: what arrived before is counted."""
    stages: list[StageLag]

    def of(self, *names: str) -> int:
        """Return how many messages these stages have left."""
        return sum(stage.lag for stage in self.stages if stage.stage in names)

    def oldest(self, *names: str) -> str:
        """Return the earliest arrival of what these stages have left; when nothing is left, when the look began."""
        return min((s.oldest for s in self.stages if s.stage in names and s.oldest), default=self.at)


class LagReader:
    """Looks at stages, in the order of the journey. Connects at the first look, and again after a failure."""

    def __init__(self, bootstrap: str, clock: Clock) -> None:
        self._bootstrap, self._clock = bootstrap, clock
        self._admin: Any = None
        self._consumer: Any = None
        self._ready = False
        self._lock = asyncio.Lock()
        self._numbers: tuple[float, dict[str, int]] | None = None
        self._peeked: dict[TopicPartition, tuple[int, str]] = {}

    async def read(self, stages: Sequence[Stage]) -> Lag:
        """Return the lag of each stage. Raises BackendUnavailable when Kafka does not answer."""
        async with self._connected():
            at = self._clock()
            # From the source on: what moves on meanwhile is seen by the later stage, or by both.
            return Lag(at, [await self._looked(stage, at) for stage in stages])

    async def probe(self) -> None:
        """Raise BackendUnavailable unless a broker answers."""
        async with self._connected():
            await self._admin.describe_cluster()

    async def clients(self, groups: Sequence[str]) -> set[str]:
        """Return the client ids of the members of these groups. Raises BackendUnavailable."""
        async with self._connected():
            answers = [await self._admin.describe_consumer_groups([group]) for group in groups]
        # (code, group, state, protocol type, protocol, members), a member being (id, client id, ...).
        return {member[1] for [answer] in answers for row in answer.groups for member in row[5]}

    async def close(self) -> None:
        """Disconnect; idempotent."""
        admin, consumer, self._admin, self._consumer = self._admin, self._consumer, None, None
        self._ready = False
        for client in (consumer and consumer.stop, admin and admin.close):
            if client:
                with contextlib.suppress(KafkaError, OSError):
                    await client()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(READ_S), self._lock:
                if not self._ready:
                    await self._connect()
                yield
        except (KafkaError, OSError, TimeoutError) as error:
            await self.close()
            why = str(error) or type(error).__name__
            raise BackendUnavailable(
                f"Kafka at {self._bootstrap}: {why}; check that it runs and is reachable"
            ) from error

    async def _connect(self) -> None:
        limit = int(READ_S * 1000)
        self._admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap, request_timeout_ms=limit)
        await self._admin.start()
        self._consumer = consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            request_timeout_ms=limit,
            max_partition_fetch_bytes=PEEK_BYTES,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        self._ready = True

    async def _looked(self, stage: Stage, at: str) -> StageLag:
        """Look at a stage; again when a partition has just come, or is moving to another broker."""
        for _ in range(TRIES - 1):
            try:
                return await self._stage(stage, at)
            except KafkaError as error:
                if not error.retriable:
                    raise
                await asyncio.sleep(PAUSE_S)
        return await self._stage(stage, at)

    async def _stage(self, stage: Stage, at: str) -> StageLag:
        committed = {
            tp: known.offset for tp, known in (await self._admin.list_consumer_group_offsets(stage.group)).items()
        }
        parts = sorted({*await self._partitions(stage.topics), *committed})
        ends = await self._consumer.end_offsets(parts) if parts else {}
        begins = await self._consumer.beginning_offsets(parts) if parts else {}
        # What was deleted by age before it was read is no lag: the group goes on at what is there.
        reached = {tp: max(committed.get(tp, -1), begins[tp]) for tp in parts}
        behind = {tp: reached[tp] for tp in parts if ends[tp] > reached[tp]}
        oldest = await self._arrivals(behind, at)
        partitions = [
            PartitionLag(
                topic=tp.topic, partition=tp.partition, lag=max(0, ends[tp] - reached[tp]), oldest=oldest.get(tp, "")
            )
            for tp in parts
        ]
        return StageLag(
            stage=stage.name,
            group=stage.group,
            members=await self._members(stage.group),
            lag=sum(part.lag for part in partitions),
            oldest=min(oldest.values(), default=""),
            partitions=partitions,
        )

    async def _partitions(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Return the partitions of those topics that exist (asking for others by name could create them)."""
        now, plain = asyncio.get_running_loop().time(), {topic for topic in topics if topic[:1] != "^"}
        if self._numbers is None or now > self._numbers[0] + TOPICS_S or not self._numbers[1].keys() >= plain:
            there = {found["topic"]: len(found["partitions"]) for found in await self._admin.describe_topics()}
            self._numbers = (now, there)
        numbers = self._numbers[1]
        named = {name for topic in topics for name in ([topic] if topic[:1] != "^" else _matching(topic, numbers))}
        return [TopicPartition(name, number) for name in sorted(named) for number in range(numbers.get(name, 0))]

    async def _members(self, group: str) -> int:
        [answer] = await self._admin.describe_consumer_groups([group])
        return len(answer.groups[0][5])  # code, group, state, protocol type, protocol, members

    async def _arrivals(self, behind: Mapping[TopicPartition, int], at: str) -> dict[TopicPartition, str]:
        """Return when the message at each of these offsets arrived; asked of Kafka once for each offset."""
        known = {
            tp: self._peeked[tp][1] for tp, offset in behind.items() if self._peeked.get(tp, (-1, ""))[0] == offset
        }
        asked = {tp: offset for tp, offset in behind.items() if tp not in known}
        if asked:
            found = await self._peek(asked)
            self._peeked.update({tp: (asked[tp], arrived) for tp, arrived in found.items()})
            known |= found
        return {tp: known.get(tp, at) for tp in behind}

    async def _peek(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, str]:
        found: dict[TopicPartition, str] = {}
        self._consumer.assign(list(asked))
        try:
            for tp, offset in asked.items():
                self._consumer.seek(tp, offset)
            end = asyncio.get_running_loop().time() + PEEK_S
            while (rest := end - asyncio.get_running_loop().time()) > 0 and len(found) < len(asked):
                for tp, messages in (await self._consumer.getmany(timeout_ms=int(rest * 1000) + 1)).items():
                    found.setdefault(tp, arrival_of(messages[0]))
                    if tp in self._consumer.assignment():
                        self._consumer.pause(tp)
        finally:
            self._consumer.unsubscribe()
        return found


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if re.match(pattern, name)]


def arrival_of(message: Any) -> str:
    """Return when a message's event arrived: as an earlier stage noted it, else the message's own time."""
    noted = dict(message.headers or ()).get(ARRIVED)
    if noted:
        return bytes(noted).decode("ascii", "replace")
    return rfc3339(datetime.datetime.fromtimestamp(message.timestamp / 1000, datetime.UTC))
