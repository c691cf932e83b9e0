"""One Faust app: a member of a stage's consumer group for one lane, in the pattern that loses nothing (PITFALLS.md).

Raw bytes in; `noack().events()`; concurrency 1; acknowledged strictly in order and only after the next topic, or every
store, has accepted; what is down is waited for, with growing pauses, a bounded number of times; everything else
ends the process, and the events are delivered again.

Lanes are apps of their own, since Faust's fetcher waits for the fullest buffer of its consumer: a flood of
imports would stop the changes beside it.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import faust
from mode import CrashingSupervisor

from pipeline.agents.batches import batches, persist
from pipeline.agents.consumer import InOrderConsumer
from pipeline.agents.delivery import Delivered, delivered
from schemas.change_event import Lane

BATCH = 64
"""Messages taken at once."""
LINGER_S = 0.002
"""What a batch that is not full waits for more."""
SESSION_S = 10.0
COMMIT_S = 1.0
BUFFERED = 128
"""Messages that wait in memory, for each topic of a lane. Kafka hands out at most FETCH_BYTES of a partition at once,
or one message that is larger."""
FETCH_BYTES = 1 << 20

Take = Callable[[Sequence[Delivered]], Awaitable[None]]


def lane_app(
    group: str, topics: Sequence[str], lane: Lane, take: Take, *, bootstrap: str, client: str, folder: Path
) -> faust.App:
    """Return the app; nothing connects until it is started. `take` is called again after BackendUnavailable."""
    app = faust.App(
        group,
        broker=[f"aiokafka://{server}" for server in bootstrap.split(",")],
        broker_client_id=client,
        # Later, not lost: unfinished events are waited for at a shutdown and at a rebalance.
        stream_wait_empty=True,
        stream_buffer_maxsize=BUFFERED,
        agent_supervisor=CrashingSupervisor,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=FETCH_BYTES,
        broker_max_poll_records=BUFFERED,
        broker_commit_interval=COMMIT_S,
        # So long do a killed worker's partitions stand still. Heartbeats come from a thread of their own.
        broker_session_timeout=SESSION_S,
        broker_heartbeat_interval=1.0,  # also how soon a member hears of a rebalance
        producer_acks=-1,
        # Topics are ours to create: see topic_admin.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        autodiscover=False,
        store="memory://",
        datadir=str(folder),
    )
    app.transport.Consumer = InOrderConsumer  # type: ignore[misc]
    source = app.topic(*topics, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    @app.agent(source, concurrency=1, name=f"{group}.{lane}")
    async def serve(stream: Any) -> None:
        async for batch in batches(stream, BATCH, LINGER_S):
            # From the messages, not from the events: what arrived, byte for byte.
            await persist(partial(take, [delivered(event.message, lane) for event in batch]))
            for event in batch:
                await stream.ack(event)

    return app
