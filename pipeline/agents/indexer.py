"""The Faust app: one agent over the source topic, in the pattern that loses nothing (PITFALLS.md).

Raw bytes in; `noack().events()`; concurrency 1; acknowledged strictly in order and only after every
store has accepted; a store that is down is waited for, with growing pauses, a bounded number of times;
everything else ends the process, and the events are delivered again.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import faust
import structlog
from mode import CrashingSupervisor

from pipeline.agents.journey import BATCH, Delivered, Journey, delivered
from pipeline.errors import BackendUnavailable
from schemas.change_event import RawEvent
from schemas.topics import Topics

log = structlog.get_logger(__name__)

LINGER = 0.01
"""Seconds that a batch that is not full waits for more."""
SESSION_S = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
TRIES = 18
"""Some five minutes of waiting for a store; then the process ends, and whoever runs it sees."""

OpenJourney = Callable[[], AbstractAsyncContextManager[Journey]]


def make_app(bootstrap: str, topics: Topics, group: str, folder: Path, open_journey: OpenJourney) -> faust.App:
    """Return the app; nothing connects until a worker runs it."""
    app = faust.App(
        group,
        broker=[f"aiokafka://{server}" for server in bootstrap.split(",")],
        # Later, not lost: unfinished events are waited for at a shutdown and at a rebalance.
        stream_wait_empty=True,
        agent_supervisor=CrashingSupervisor,
        consumer_auto_offset_reset="earliest",
        # So long do a killed worker's partitions stand still. Heartbeats come from a thread of their own.
        broker_session_timeout=SESSION_S,
        broker_heartbeat_interval=SESSION_S / 4,
        producer_acks=-1,
        # Topics are ours to create: see topic_admin.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        autodiscover=False,
        store="memory://",
        datadir=str(folder),
    )
    source = app.topic(
        topics.events.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )

    @app.agent(source, concurrency=1, name=f"{group}.index")
    async def index(stream: Any) -> None:
        async with open_journey() as journey:
            await persist(journey.catch_up)
            async for batch in batches(stream, BATCH, LINGER):
                await persist(partial(journey.take, [_delivered(event) for event in batch]))
                for event in batch:
                    await stream.ack(event)

    return app


def _delivered(event: Any) -> Delivered:
    # From the message, not from the event: what arrived, byte for byte, a tombstone as None.
    message = event.message
    headers = {
        str(name).lower(): bytes(value).decode("utf-8", "replace")
        for name, value in dict(message.headers or {}).items()
        if value is not None
    }
    raw = RawEvent(value=message.value, key=message.key, headers=headers, topic=message.topic)
    return delivered(message.topic, message.partition, message.offset, raw)


async def batches(stream: Any, most: int, linger: float) -> AsyncIterator[list[Any]]:
    """Collect events up to `most`, or until none came for `linger`; none is acknowledged.

    By hand, since Faust's own `take` loses a whole batch when its body raises. The next event is asked
    for in a task that outlives a pause: cancelling it would close the stream.
    """
    events = stream.noack().events().__aiter__()
    coming = asyncio.ensure_future(anext(events))
    batch: list[Any] = []
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=linger if batch else None)
            if done:
                try:
                    batch.append(coming.result())
                except StopAsyncIteration:
                    break
                coming = asyncio.ensure_future(anext(events))
            if batch and (not done or len(batch) >= most):
                yield batch
                batch = []
        if batch:
            yield batch
    finally:
        coming.cancel()


async def persist(work: Callable[[], Awaitable[object]], pauses: Iterator[float] | None = None) -> None:
    """Do work again while a store is down, after longer and longer pauses; then let the error out."""
    for pause in pauses or growing_pauses():
        try:
            await work()
        except BackendUnavailable as error:
            log.warning("indexing_paused", reason=str(error), seconds=pause)
            await asyncio.sleep(pause)
        else:
            return
    await work()


def growing_pauses() -> Iterator[float]:
    """Yield the pauses between tries."""
    pause = FIRST_PAUSE
    for _ in range(TRIES - 1):
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
