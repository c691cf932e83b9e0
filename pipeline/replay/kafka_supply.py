"""What the stack does for replays: topics, groups and their offsets, references, and the indexes of generations."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec
import structlog
from aiokafka import TopicPartition

from pipeline.agents.outbox import Outbox
from pipeline.agents.topic_admin import create_topics
from pipeline.change_times import seconds_between
from pipeline.clock import Clock
from pipeline.errors import NotPossible
from pipeline.ports.generations import Indexes, ReplayPlan
from pipeline.replay.kafka_offsets import Kafka
from pipeline.replay.plan import Start, start_of
from pipeline.replay.supply import Look
from pipeline.stack.lag import LagReader
from pipeline.stack.signals import StackStages
from schemas.topics import GenerationTopics, Topics, analyze_group, apply_group, generation_topics

log = structlog.get_logger(__name__)

DROP_WAIT_S = 30.0
"""Requests over a generation that has just stopped being live may still take so long."""
LET_GO_S = 60.0
"""Workers of a generation that is being removed finish their batches and leave in this time."""
LOOK_S = 0.5


class Installation(msgspec.Struct, frozen=True):
    """Where an installation's topics are."""

    bootstrap: str
    topics: Topics
    prefix: str
    partitions: int

    def of(self, generation: str) -> GenerationTopics:
        """Return the topics of a generation."""
        return generation_topics(self.prefix, generation, self.partitions)

    def groups(self, generation: str) -> list[str]:
        """Return the groups of a generation."""
        return [analyze_group(self.prefix, generation), apply_group(self.prefix, generation)]

    @property
    def records(self) -> list[str]:
        """The topics that a generation is built from."""
        return [self.topics.records.name, self.topics.records_bulk.name]


class KafkaSupply:
    """Implements `pipeline.replay.supply.Supply`. The work itself is done by workers, which watch the generations."""

    def __init__(
        self,
        installation: Installation,
        outbox: Outbox,
        lag: LagReader,
        stages: StackStages,
        open_indexes: Callable[[str], AbstractAsyncContextManager[Indexes]],
        clock: Clock,
    ) -> None:
        """`open_indexes` opens those of a generation for a process that may also remove them."""
        self._at, self._outbox, self._lag, self._stages = installation, outbox, lag, stages
        self._open_indexes, self._clock = open_indexes, clock
        self._kafka = Kafka(installation.bootstrap)
        self._handed_on: dict[str, dict[TopicPartition, int]] = {}

    async def create(self, name: str, plan: ReplayPlan) -> dict[str, int]:
        """Create topics, and place the group that reads records: nobody is in it before the row is there."""
        start = start_of(plan.start)
        starts = await self._kafka.starts(self._at.records, start)
        ends = await self._kafka.ends(self._at.records)
        if plan.collections:
            starts = ends  # a trial takes its documents by reference, and changes from now on
        await create_topics(self._at.bootstrap, self._at.of(name).all())
        await self._kafka.place(self._at.groups(name)[0], starts)
        return {f"{tp.topic}:{tp.partition}": end for tp, end in ends.items()}

    async def begin(self, name: str) -> None:
        """Nothing to do: workers see the row."""

    async def read(self, name: str, targets: dict[str, int]) -> bool:
        """Say whether the group has read all, and what it sent on is in the indexes."""
        analyze, apply = self._at.groups(name)
        if name not in self._handed_on:
            wanted = {_partition(target): end for target, end in targets.items()}
            done = await self._kafka.read(analyze, list(wanted))
            if any(done[tp] < end for tp, end in wanted.items()):
                return False
            self._handed_on[name] = await self._kafka.ends([topic.name for topic in self._at.of(name).all()])
        done = await self._kafka.read(apply, list(self._handed_on[name]))
        return all(done[tp] >= end for tp, end in self._handed_on[name].items())

    async def again(self, name: str, documents: Sequence[str]) -> None:
        """Send references."""
        await self._outbox.references(self._at.of(name), documents)

    async def since(self, start: str) -> AsyncIterator[str]:
        """Yield the keys of records."""
        asked: Start = start_of(start)
        async for key in self._kafka.keys(await self._kafka.starts(self._at.records, asked)):
            yield key

    async def look(self, name: str) -> Look:
        """Return lag and workers of the generation's stages; a stage without workers makes it none."""
        lag = await self._lag.read(self._stages.of(name)[1:])
        return Look(lag=lag.of("analyze", "apply"), members=min(stage.members for stage in lag.stages))

    async def promoted(self, name: str, replaced: str) -> None:
        """Nothing to do: workers and API processes see the row."""

    async def readers_gone(self, name: str, left_live: str) -> None:
        """Wait for the requests of all API processes: nobody counts those, so by time."""
        if left_live:
            await asyncio.sleep(max(0.0, DROP_WAIT_S - seconds_between(left_live, self._clock())))

    async def remove(self, name: str) -> None:
        """Wait until workers have let go, and remove indexes, topics and groups."""
        end = asyncio.get_running_loop().time() + LET_GO_S
        while workers := sum(stage.members for stage in (await self._lag.read(self._stages.of(name)[1:])).stages):
            if asyncio.get_running_loop().time() > end:
                raise NotPossible(
                    f"{workers} workers have not let go of {name} after {LET_GO_S:g} s: see their logs, stop them, "
                    f"then `shinsen prune {name}` goes on"
                )
            await asyncio.sleep(LOOK_S)
        async with self._open_indexes(name) as indexes:
            await indexes.chunks.drop()
            await indexes.graph.drop()
        await self._kafka.remove([topic.name for topic in self._at.of(name).all()], self._at.groups(name))
        self._handed_on.pop(name, None)

    def indexes(self, name: str) -> AbstractAsyncContextManager[Indexes]:
        """Open one for reading; prune by another process waits for nobody here, and ends it with an error."""
        return self._open_indexes(name)


def _partition(target: str) -> TopicPartition:
    topic, _, number = target.rpartition(":")
    return TopicPartition(topic, int(number))
