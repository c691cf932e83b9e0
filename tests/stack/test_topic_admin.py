"""Topics on a real broker: made once, checked at each start."""

import uuid
from collections.abc import Callable

import msgspec
import pytest

from ops.stack.server import Endpoint
from pipeline.agents.topic_admin import COMMAND, check_topics, create_topics
from pipeline.errors import BackendUnavailable, InvalidConfiguration
from schemas.topics import Topic, topics

pytestmark = pytest.mark.stack


@pytest.fixture
def kafka(stack_server: Callable[[str], Endpoint]) -> str:
    return stack_server("kafka").url


async def test_what_is_declared_is_made_and_found(kafka: str) -> None:
    declared = topics(f"t{uuid.uuid4().hex[:8]}.", 3).all()
    with pytest.raises(InvalidConfiguration, match=COMMAND):
        await check_topics(kafka, declared)
    for _ in range(2):
        await create_topics(kafka, declared)
        await check_topics(kafka, declared)


async def test_another_cleanup_or_too_few_partitions_are_refused(kafka: str) -> None:
    topic = Topic(name=f"t{uuid.uuid4().hex[:8]}", partitions=2)
    await create_topics(kafka, [topic])
    await check_topics(kafka, [msgspec.structs.replace(topic, partitions=1)])
    with pytest.raises(InvalidConfiguration, match="SHINSEN_PARTITIONS"):
        await check_topics(kafka, [msgspec.structs.replace(topic, partitions=3)])
    with pytest.raises(InvalidConfiguration, match=r"cleanup\.policy=delete"):
        await check_topics(kafka, [msgspec.structs.replace(topic, cleanup="compact")])


async def test_no_broker() -> None:
    with pytest.raises(BackendUnavailable, match="check that it runs"):
        await check_topics("127.0.0.1:1", topics().all())
