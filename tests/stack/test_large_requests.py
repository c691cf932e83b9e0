"""What is asked for at once may be a million documents, or a few that are as large as an event: it goes in parts."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from ops.stack.server import Endpoint
from pipeline.agents import outbox as sending
from pipeline.agents.applying import REFERRED, Applying
from pipeline.agents.delivery import Delivered
from pipeline.agents.outbox import Outbox, reference
from pipeline.agents.topic_admin import create_topics
from pipeline.clock import system_clock
from schemas.change_event import RawEvent
from schemas.topics import GenerationTopics, generation_topics, topics
from tests.differential.events import Change, history
from tests.differential.running import running
from tests.pipeline.test_appliers import ALL, Writers, advance

pytestmark = pytest.mark.stack


@pytest.fixture
def kafka(stack_server: Callable[[str], Endpoint]) -> str:
    return stack_server("kafka").url


@pytest.fixture
async def outbox(kafka: str) -> AsyncIterator[tuple[Outbox, GenerationTopics]]:
    prefix = f"t{uuid.uuid4().hex[:8]}."
    own = generation_topics(prefix, "g1", 1)
    await create_topics(kafka, [*topics(prefix, 1).all(), *own.all()])
    opened = Outbox(kafka, topics(prefix, 1))
    yield opened, own
    await opened.close()


async def test_references_are_drawn_and_sent_in_parts(
    outbox: tuple[Outbox, GenerationTopics], kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "AT_ONCE", 100)
    box, own = outbox

    def names() -> Iterator[str]:
        for number in range(250):
            yield f"a/b/{number}"
        raise LookupError("the rest is never drawn")

    with pytest.raises(LookupError):
        await box.references(own, names())
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka)
    await consumer.start()
    try:
        where = TopicPartition(own.analyzed_bulk.name, 0)
        assert (await consumer.end_offsets([where]))[where] == 200
    finally:
        await consumer.stop()


class Counted:
    """A preparer that writes down how many documents it is given together."""

    def __init__(self, real: Any) -> None:
        self._real, self.sizes = real, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def analyzed(self, records: Sequence[Any], lane: Any) -> Any:
        self.sizes.append(len(records))
        return await self._real.analyzed(records, lane)


async def test_documents_that_are_referred_to_are_prepared_a_few_at_a_time(
    outbox: tuple[Outbox, GenerationTopics], tmp_path: Path
) -> None:
    box, own = outbox
    events = history([Change("report", f"r{n}", (("荷を降ろした。",), ALL, "田中")) for n in range(3 * REFERRED)])
    async with running(tmp_path) as runtime:
        writers = Writers(runtime)
        documents = [await advance(runtime, n, event) for n, event in enumerate(events, 1)]
        counted: Any = Counted(writers._preparer)
        applying = Applying(own, runtime.state, counted, writers.another("w"), box, system_clock)
        records = (await runtime.state.records(documents)).values()
        batch = [_delivered(n, reference(own.analyzed.name, record, {})[2]) for n, record in enumerate(records)]
        await applying.take(batch, "live")
        assert counted.sizes == [REFERRED] * 3
        assert set(await runtime.state.settled("g1", documents)) == set(documents)


def _delivered(number: int, value: bytes) -> Delivered:
    return Delivered(f"t-0-{number}", RawEvent(value=value, topic="t"), {}, "t-0", number)
