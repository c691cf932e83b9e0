"""What is left to do, read from Kafka, when messages were deleted before their group read them."""

import uuid
from collections.abc import AsyncIterator, Callable

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete

from ops.stack.server import Endpoint
from pipeline.clock import system_clock
from pipeline.replay.kafka_offsets import Kafka
from pipeline.stack.lag import LagReader, Stage

pytestmark = [pytest.mark.stack, pytest.mark.timeout(120)]
MESSAGES = 5
Topic = tuple[str, str]
"""Bootstrap servers and the name of a topic of three partitions, with MESSAGES messages in the first two."""


@pytest.fixture
async def topic(stack_server: Callable[[str], Endpoint]) -> AsyncIterator[Topic]:
    url, name = stack_server("kafka").url, f"t{uuid.uuid4().hex[:10]}.analyzed-g1"
    admin = AIOKafkaAdminClient(bootstrap_servers=url)
    await admin.start()
    await admin.create_topics([NewTopic(name, 3, 1)])
    async with AIOKafkaProducer(bootstrap_servers=url, acks="all") as producer:
        for n in range(2 * MESSAGES):
            await producer.send_and_wait(name, b"x", partition=n % 2)
    yield url, name
    await admin.delete_topics([name])
    await admin.close()


async def delete(url: str, gone: dict[TopicPartition, int]) -> None:
    """Do what retention does to the messages below these offsets."""
    admin = AIOKafkaAdminClient(bootstrap_servers=url)
    await admin.start()
    await admin.delete_records({tp: RecordsToDelete(before_offset=offset) for tp, offset in gone.items()})
    await admin.close()


async def test_messages_that_are_gone_are_no_lag_whether_the_group_had_begun_or_not(topic: Topic) -> None:
    url, name = topic
    first, second, third = (TopicPartition(name, n) for n in range(3))
    kafka, reader, group = Kafka(url), LagReader(url, system_clock), f"{name}.group"
    try:
        await kafka.place(group, {first: 2})
        assert (await reader.read([Stage("apply", group, (name,))])).of("apply") == 2 * MESSAGES - 2
        assert await kafka.read(group, [first, second, third]) == {first: 2, second: 0, third: 0}
        await delete(url, {first: 4, second: MESSAGES})
        [stage] = (await reader.read([Stage("apply", group, (name,))])).stages
        assert [part.lag for part in stage.partitions] == [1, 0, 0]
        assert await kafka.read(group, [first, second, third]) == {first: 4, second: MESSAGES, third: 0}
        await delete(url, {first: MESSAGES})
        [stage] = (await reader.read([Stage("apply", group, (name,))])).stages
        assert (stage.lag, stage.oldest) == (0, "")
    finally:
        await reader.close()
        await kafka.remove([], [group])
