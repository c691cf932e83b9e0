"""Kafka for replays: where reading begins and ends, what groups have read, and removing what a generation had there."""

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DeleteGroupsRequest

from pipeline.errors import BackendUnavailable, NotPossible
from pipeline.replay.plan import Start

IDLE_S = 10.0
"""Without any message for so long, a read to a known end gives up."""
GONE = {0, 3}
"""Error codes of a deleted topic: none, and that it is not there."""
NO_GROUP = {0, 69}
"""The same of a group."""


class Kafka:
    """Connects for each call: replays are rare."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    async def starts(self, topics: Sequence[str], start: Start) -> dict[TopicPartition, int]:
        """Return where reading begins in each partition. Raises NotPossible when the topics no longer have it."""
        async with self._consumer() as consumer, self._admin() as admin:
            parts = await _partitions(admin, topics)
            begins, ends = await consumer.beginning_offsets(parts), await consumer.end_offsets(parts)
            _check_named(start, parts, begins, ends)
            found = {tp: start.offsets.get((tp.topic, tp.partition), begins[tp]) for tp in parts}
            if start.time:
                await self._check_kept(admin, consumer, begins, ends, start.time)
                moment = int(datetime.datetime.fromisoformat(start.time).timestamp() * 1000)
                since = await consumer.offsets_for_times(dict.fromkeys(parts, moment))
                found = {tp: ends[tp] if at is None else at.offset for tp, at in since.items()}
            return found

    async def _check_kept(
        self,
        admin: Any,
        consumer: Any,
        begins: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        time: str,
    ) -> None:
        """Refuse a time before the first message kept, of a topic that loses messages by age or by hand."""
        for tp, begin in begins.items():
            if not begin or (begin < ends[tp] and await _time_at(consumer, tp, begin) <= time):
                continue
            policy = await _cleanup(admin, tp.topic)
            raise NotPossible(
                f"{tp.topic}:{tp.partition} has no message before offset {begin} any more (cleanup.policy={policy}), "
                f"and {time} may lie before it: give a later time, or --from beginning, which fills in what is missing "
                "from the records"
            )

    async def ends(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """Return where each partition of these topics ends now; topics that are not there have none."""
        async with self._consumer() as consumer, self._admin() as admin:
            parts = await _partitions(admin, topics)
            return dict(await consumer.end_offsets(parts)) if parts else {}

    async def place(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Let a group that nobody is in begin at these offsets."""
        async with self._consumer(group_id=group) as consumer:
            consumer.assign(list(offsets))
            await consumer.commit(dict(offsets))

    async def read(self, group: str, parts: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of the next message of a group in these partitions.

        That is what it has acknowledged, or the first offset that is left: what was deleted by age before the group
        read it will never come.
        """
        async with self._admin() as admin, self._consumer() as consumer:
            known = {tp: at.offset for tp, at in (await admin.list_consumer_group_offsets(group)).items()}
            begins = await consumer.beginning_offsets(list(parts)) if parts else {}
            return {tp: max(known.get(tp, 0), begins[tp]) for tp in parts}

    async def keys(self, starts: Mapping[TopicPartition, int]) -> AsyncIterator[str]:
        """Yield the keys of all messages from these offsets up to the ends of now."""
        async with self._consumer() as consumer:
            ends = await consumer.end_offsets(list(starts))
            left = {tp for tp, begin in starts.items() if begin < ends[tp]}
            consumer.assign(sorted(left))
            for tp in left:
                consumer.seek(tp, starts[tp])
            while left:
                async with asyncio.timeout(IDLE_S):  # its end is known, so something must come
                    found = await consumer.getmany(timeout_ms=500)
                for messages in found.values():
                    for message in messages:
                        yield (message.key or b"").decode("utf-8", "replace")
                # Not by the messages: a compacted topic ends in gaps.
                left = {tp for tp in left if await consumer.position(tp) < ends[tp]}

    async def remove(self, topics: Sequence[str], groups: Sequence[str]) -> None:
        """Delete topics and groups; missing ones are no error."""
        async with self._admin() as admin:
            there = set(await admin.list_topics())
            if named := [topic for topic in topics if topic in there]:
                answer = await admin.delete_topics(named)
                _check_gone("topic", {name: code for name, code, *_ in answer.topic_error_codes}, GONE)
            for group in groups:
                # aiokafka has the request and no method for it.
                node = await admin.find_coordinator(group)
                answer = await admin._send_request(DeleteGroupsRequest([group]), node)
                _check_gone("group", {name: code for name, code, *_ in answer.results}, NO_GROUP)

    @asynccontextmanager
    async def _consumer(self, **more: Any) -> AsyncIterator[Any]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, enable_auto_commit=False, auto_offset_reset="earliest", **more
        )
        async with self._answering(), contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(consumer.stop)
            await consumer.start()
            yield consumer

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[Any]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        async with self._answering(), contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(admin.close)
            await admin.start()
            yield admin

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            yield
        except (KafkaError, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
            raise BackendUnavailable(
                f"Kafka at {self._bootstrap}: {why}; check that it runs and is reachable"
            ) from error


async def _partitions(admin: Any, topics: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of those topics that exist (asking for others by name could create them)."""
    there = {found["topic"]: len(found["partitions"]) for found in await admin.describe_topics()}
    return [TopicPartition(topic, number) for topic in topics for number in range(there.get(topic, 0))]


def _check_named(
    start: Start,
    parts: Sequence[TopicPartition],
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> None:
    for (topic, partition), offset in start.offsets.items():
        tp = TopicPartition(topic, partition)
        if tp not in parts:
            have = ", ".join(f"{part.topic}:{part.partition}" for part in parts)
            raise NotPossible(f"records are not in {topic}:{partition}; they are in {have}")
        if not begins[tp] <= offset <= ends[tp]:
            gone = "it was deleted" if offset < begins[tp] else "it was never written"
            raise NotPossible(
                f"{topic}:{partition} has the offsets {begins[tp]} to {ends[tp]} and not {offset}: {gone}; give one of "
                "these, or --from beginning, which fills in what is missing from the records"
            )


async def _time_at(consumer: Any, tp: TopicPartition, offset: int) -> str:
    """Return the time of the first message at or after an offset, RFC 3339 UTC."""
    consumer.assign([tp])
    consumer.seek(tp, offset)
    try:
        async with asyncio.timeout(IDLE_S):
            message = await consumer.getone()
    finally:
        consumer.unsubscribe()
    moment = datetime.datetime.fromtimestamp(message.timestamp / 1000, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _cleanup(admin: Any, topic: str) -> str:
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    entries = [entry for answer in answers for resource in answer.resources for entry in resource[4]]
    return str({entry[0]: entry[1] for entry in entries}.get("cleanup.policy", "unknown"))


def _check_gone(what: str, codes: Mapping[str, int], fine: set[int]) -> None:
    kept = {name: code for name, code in codes.items() if code not in fine}
    if kept:
        raise BackendUnavailable(
            f"Kafka did not delete the {what} {next(iter(kept))}: error {next(iter(kept.values()))}"
        )
