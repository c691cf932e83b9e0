"""Creating the topics, and refusing to start where one is missing or other than declared."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError

from pipeline.errors import BackendUnavailable, InvalidConfiguration
from schemas.topics import Topic

log = structlog.get_logger(__name__)

REPLICAS = 3
"""Of each partition, where there are so many brokers."""
VISIBLE_S = 30.0
COMMAND = "python -m pipeline.agents create-topics"


async def create_topics(bootstrap: str, declared: Sequence[Topic]) -> None:
    """Create what is missing, and return when the brokers know it; topics that are there stay as they are."""
    async with _admin(bootstrap) as admin:
        there = await admin.list_topics()
        brokers = len((await admin.describe_cluster())["brokers"])
        for topic in declared:
            if topic.name not in there:
                await _create(admin, topic, min(REPLICAS, brokers))
        async with asyncio.timeout(VISIBLE_S):
            while missing := {topic.name for topic in declared} - set(await admin.list_topics()):
                log.debug("topics_on_their_way", topics=sorted(missing))
                await asyncio.sleep(0.1)


async def _create(admin: AIOKafkaAdminClient, topic: Topic, replicas: int) -> None:
    new = NewTopic(topic.name, topic.partitions, replicas, topic_configs=_settings(topic))
    try:
        answer = await admin.create_topics([new])
    except TopicAlreadyExistsError:
        return
    for name, code, *rest in answer.topic_errors:
        if code not in (0, TopicAlreadyExistsError.errno):
            raise BackendUnavailable(f"Kafka did not create the topic {name}: error {code} {rest}")


async def check_topics(bootstrap: str, declared: Sequence[Topic]) -> None:
    """Raise InvalidConfiguration naming the command that mends it; more partitions than declared are fine."""
    async with _admin(bootstrap) as admin:
        there = {found["topic"]: found for found in await admin.describe_topics()}
        missing = [topic.name for topic in declared if topic.name not in there]
        if missing:
            raise InvalidConfiguration(f"Kafka has no topic {', '.join(missing)}; create it: {COMMAND}")
        for topic in declared:
            number = len(there[topic.name]["partitions"])
            if number < topic.partitions:
                raise InvalidConfiguration(
                    f"the topic {topic.name} has {number} partitions, declared are {topic.partitions}: set "
                    "SHINSEN_PARTITIONS to what is there, or add partitions with kafka-topics --alter"
                )
            await _check_settings(admin, topic)


async def _check_settings(admin: AIOKafkaAdminClient, topic: Topic) -> None:
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic.name)])
    entries = {entry[0]: entry[1] for answer in answers for resource in answer.resources for entry in resource[4]}
    limit = int(entries.get("max.message.bytes", topic.max_message))
    if limit < topic.max_message:
        raise InvalidConfiguration(
            f"the topic {topic.name} has max.message.bytes={limit}, messages may have {topic.max_message}: raise it "
            "with kafka-configs --alter, or lower SHINSEN_MAX_EVENT"
        )
    found = entries.get("cleanup.policy", topic.cleanup)
    if found != topic.cleanup:
        raise InvalidConfiguration(
            f"the topic {topic.name} has cleanup.policy={found}, not {topic.cleanup}: events would be lost or kept "
            f"for ever; mend it with kafka-configs --alter, or delete the topic and run {COMMAND}"
        )


async def topic_names(bootstrap: str, given: Sequence[str]) -> list[str]:
    """Return the topics that are given by name, and those that match one given as a regular expression (^...).

    Raises InvalidConfiguration for a name that Kafka does not have: those are other systems' to create.
    """
    if not given:
        return []
    async with _admin(bootstrap) as admin:
        there = sorted(await admin.list_topics())
    patterns = [re.compile(one) for one in given if one.startswith("^")]
    names = [one for one in given if not one.startswith("^")]
    missing = [name for name in names if name not in there]
    if missing:
        raise InvalidConfiguration(
            f"Kafka has no topic {', '.join(missing)}, which SHINSEN_SOURCE_TOPICS names; mend the name, or let the "
            "source create it first"
        )
    matching = [name for name in there if any(pattern.match(name) for pattern in patterns)]
    return list(dict.fromkeys([*names, *matching]))


def _settings(topic: Topic) -> dict[str, str]:
    settings: dict[str, str] = {"cleanup.policy": topic.cleanup, "max.message.bytes": str(topic.max_message)}
    if topic.cleanup == "delete":
        settings["retention.ms"] = str(topic.retention_ms)
    return settings


@asynccontextmanager
async def _admin(bootstrap: str) -> AsyncIterator[Any]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        yield admin
    except (KafkaError, OSError) as error:
        raise BackendUnavailable(f"Kafka at {bootstrap}: {error}; check that it runs and is reachable") from error
    finally:
        await admin.close()
