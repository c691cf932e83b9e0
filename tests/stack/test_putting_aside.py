"""What an operator reads on the topic of dead letters: why, from where, and how often by now."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from ops.stack.server import Endpoint
from pipeline.agents.outbox import Outbox
from pipeline.agents.putting_aside import put_aside
from pipeline.agents.topic_admin import create_topics
from pipeline.backends.state_sqlite import open_state_database, sqlite_state
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter
from schemas.topics import topics

pytestmark = pytest.mark.stack


async def test_headers_count_attempts_and_name_the_topic(
    stack_server: Callable[[str], Endpoint], tmp_path: Path
) -> None:
    kafka, declared = stack_server("kafka").url, topics(f"t{uuid.uuid4().hex[:8]}.", 1)
    await create_topics(kafka, declared.all())
    database, outbox = open_state_database(tmp_path), Outbox(kafka, declared)
    state = sqlite_state(database)
    early = DeadLetter(id="l1", event="erp.orders-v2-3-17", code="not_json", reason="it is no JSON")
    late = DeadLetter(id="l2", event="erp.orders-v2-3-18", code="wrong_type", reason="a number", stage="map")
    raw = RawEvent(value=b"not json", topic="erp.orders-v2")
    for _ in range(2):
        await put_aside(state, outbox, [(early, raw), (late, None)])
    kept = [await state.dead_letter(name) for name in ("l1", "l2")]
    assert [letter.attempts for letter in kept if letter] == [2, 2]
    consumer = AIOKafkaConsumer(
        declared.dead_letters.name, bootstrap_servers=kafka, auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer:
        said = [dict((await consumer.getone()).headers) for _ in range(4)]
    assert [one["shinsen-attempts"] for one in said] == [b"1", b"1", b"2", b"2"]
    assert {one["shinsen-topic"] for one in said} == {b"erp.orders-v2"}
    assert [one["shinsen-code"] for one in said[:2]] == [b"not_json", b"wrong_type"]
    await outbox.close()
    await database.close()
