"""Follows the topic `outcomes`: wakes waiters at once, and counts how long changes took."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from pipeline.change_times import ChangeTimes, seconds_between
from schemas.outcome import Outcome
from schemas.topics import APPLIED, ARRIVED, RECONCILED

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
POLL_MS = 1_000


class OutcomeFollower:
    """Reads from the end, in no group: each process sees every outcome. What it misses, waiters find by polling."""

    def __init__(self, bootstrap: str, topic: str, progressed: Callable[[], None], times: ChangeTimes) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._progressed, self._times = progressed, times
        self.following = asyncio.Event()
        """Set while it reads."""

    async def run(self) -> None:
        """Follow for ever; when Kafka does not answer, try again after longer and longer pauses."""
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._consumer() as consumer:
                    self.following.set()
                    pause = FIRST_PAUSE
                    await self._follow(consumer)
            except (KafkaError, OSError) as error:
                log.warning("outcomes_not_followed", reason=str(error) or type(error).__name__, seconds=pause)
            except Exception:  # a bug in here must not stop the waking of waiters for good
                log.exception("following_outcomes_failed", seconds=pause)
            self.following.clear()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Any]:
        consumer = AIOKafkaConsumer(
            self._topic, bootstrap_servers=self._bootstrap, auto_offset_reset="latest", enable_auto_commit=False
        )
        try:
            await consumer.start()
            await consumer.seek_to_end()  # now, not at the first fetch: from here on nothing is missed
            yield consumer
        finally:
            with contextlib.suppress(KafkaError, OSError):
                await consumer.stop()

    async def _follow(self, consumer: Any) -> None:
        while True:
            found = await consumer.getmany(timeout_ms=POLL_MS)
            if found:
                self._progressed()
                self._count(message for messages in found.values() for message in messages)

    def _count(self, messages: Iterable[Any]) -> None:
        for message in messages:
            times = {name: bytes(value).decode("ascii", "replace") for name, value in message.headers or ()}
            if ARRIVED not in times or _outcome(message.value) != "applied":
                continue
            key = (message.key or b"").decode("utf-8", "replace")
            for header, stores in ((RECONCILED, ("records",)), (APPLIED, ("chunks", "graph"))):
                if header in times:
                    with contextlib.suppress(ValueError):  # a header that is no time; somebody else's message
                        self._times.observe(key, stores, seconds_between(times[ARRIVED], times[header]))


def _outcome(value: bytes | None) -> str:
    try:
        return msgspec.json.decode(value or b"", type=Outcome).outcome
    except msgspec.MsgspecError:
        return ""
