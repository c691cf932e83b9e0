"""How far the topics of a source are filled, asked of Kafka."""

import asyncio
import contextlib
import re
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from pipeline.errors import BackendUnavailable
from pipeline.ports.state import State
from schemas.topics import Topics

ASK_S = 5.0


class SourcePlaces:
    """Connects at the first question, and again after a failure."""

    def __init__(self, bootstrap: str, topics: Topics, source_topics: Sequence[str], state: State) -> None:
        self._bootstrap, self._state = bootstrap, state
        self._own = (topics.events.name, topics.events_bulk.name)
        self._given = source_topics
        self._admin: Any = None
        self._consumer: Any = None
        self._lock = asyncio.Lock()

    async def of(self, source: str = "") -> dict[str, int]:
        """Return place → end of every partition that may hold events of a source; empty partitions are absent.

        Those are the topics in which it was seen, and those of SHINSEN_SOURCE_TOPICS that carry its name
        (Debezium: `<source>.<schema>.<table>`); without a name, all that workers read. Raises BackendUnavailable.
        """
        seen = {head.place.rpartition("-")[0] for head in await self._state.source_heads(source)} if source else set()
        async with self._lock:
            try:
                async with asyncio.timeout(ASK_S):
                    return await self._ends(source, seen)
            except (KafkaError, OSError, TimeoutError) as error:
                await self._drop()
                why = str(error) or type(error).__name__
                raise BackendUnavailable(f"Kafka at {self._bootstrap}: {why}; check that it runs") from error

    async def close(self) -> None:
        """Disconnect; idempotent."""
        async with self._lock:
            await self._drop()

    async def _drop(self) -> None:
        admin, consumer, self._admin, self._consumer = self._admin, self._consumer, None, None
        for close in (consumer and consumer.stop, admin and admin.close):
            if close:
                with contextlib.suppress(KafkaError, OSError):
                    await close()

    async def _ends(self, source: str, seen: set[str]) -> dict[str, int]:
        if self._consumer is None:
            self._admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await self._admin.start()
            self._consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False)
            await self._consumer.start()
        there = {found["topic"]: len(found["partitions"]) for found in await self._admin.describe_topics()}
        topics = [
            name for name in there if self._is_read(name) and (not source or name in seen or _names(name, source))
        ]
        parts = [TopicPartition(name, number) for name in topics for number in range(there[name])]
        if not parts:
            return {}
        ends, begins = await self._consumer.end_offsets(parts), await self._consumer.beginning_offsets(parts)
        return {f"{tp.topic}-{tp.partition}": int(end) for tp, end in ends.items() if end > begins[tp]}

    def _is_read(self, topic: str) -> bool:
        """Say whether workers read it: `given` holds names, and regular expressions that begin with ^."""
        by_pattern = any(one.startswith("^") and re.match(one, topic) for one in self._given)
        return topic in self._own or topic in self._given or by_pattern


def _names(topic: str, source: str) -> bool:
    return topic.startswith(f"{source}.")
