"""After the storm: nothing under way, and every published event ended exactly once, in the store and on the topic."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec
import psycopg
from aiokafka import AIOKafkaConsumer, TopicPartition

from pipeline.stack_wiring import StackStores
from schemas.outcome import Outcome
from tests.faults.contents import letters
from tests.stack.worker import Stack

QUIET_S = 240.0
"""Growing pauses of workers, after a store was away, are part of it."""


async def quiet(stack: Stack) -> None:
    """Wait until all groups have acknowledged everything and the state store knows of nothing unfinished."""
    for _ in range(2):  # twice: what one look finds done may be behind what it finds next
        await stack.settled(seconds=QUIET_S)
        await asyncio.sleep(0.5)


async def ended(stack: Stack) -> int:
    """Return how many events have an outcome."""
    async with await psycopg.AsyncConnection.connect(stack.settings.postgres) as connection:
        row = await (await connection.execute("SELECT count(*) FROM outcomes")).fetchone()
    return int(row[0]) if row else 0


async def check_outcomes(stack: Stack, stores: StackStores) -> int:
    """Hold that each message of the source topic has one outcome; return how many messages there are."""
    topic, partitions = stack.topics.events.name, stack.settings.partitions
    published = [f"{topic}-{n}-{m}" for n in range(partitions) for m in range(await stack.length(topic, n))]
    known = await stores.state.outcomes(published)
    lost = sorted(set(published) - known.keys())
    assert not lost, f"{len(lost)} events have no outcome: {[await _told(stack, stores, event) for event in lost[:5]]}"
    counts = await stores.state.counts(stores.generation)
    every = {name: number for name, number in counts.items() if name.startswith("outcome.")}
    assert sum(every.values()) == len(published), f"{every} for {len(published)} events"
    await _check_announced(stack, known)
    return len(published)


async def _told(stack: Stack, stores: StackStores, event: str) -> str:
    """Say what is known of an event without an outcome."""
    topic, partition, offset = event.rsplit("-", 2)
    async with AIOKafkaConsumer(bootstrap_servers=stack.settings.kafka) as consumer:
        place = TopicPartition(topic, int(partition))
        consumer.assign([place])
        consumer.seek(place, int(offset))
        message = await consumer.getone()
    document = (message.key or b"").decode(errors="replace")
    record = (await stores.state.records([document])).get(document)
    said = [value for _, value, _ in await stack.read(stack.topics.outcomes.name, stack.settings.partitions)]
    announced = [one for one in said if event.encode() in (one or b"")]
    return f"{event}: {message.value!r} {message.headers}; record: {record}; announced: {announced}"


async def _check_announced(stack: Stack, known: Mapping[str, str]) -> None:
    announced: dict[str, set[str]] = {}
    for _, value, _ in await stack.read(stack.topics.outcomes.name, stack.settings.partitions):
        outcome = msgspec.json.decode(value or b"", type=Outcome)
        announced.setdefault(outcome.event, set()).add(outcome.outcome)
    silent = sorted(known.keys() - announced.keys())
    assert not silent, f"{len(silent)} outcomes were never announced: {silent[:5]}"
    strange = sorted(announced.keys() - known.keys())
    assert not strange, f"announced, but of no event: {strange[:5]}"
    # A dead letter of a version that a newer one has replaced is no longer one.
    other = {
        event: (names, known[event]) for event, names in announced.items() if names - {"dead_letter"} - {known[event]}
    }
    assert not other, f"announced otherwise than it ended: {dict(list(other.items())[:5])}"


async def check_dead_letters(stack: Stack, stores: StackStores) -> None:
    """Hold that each open dead letter is on the topic with the headers that say why."""
    topic = {h["shinsen-letter"].decode(): (value, h) for _, value, h in await stack.read_dead_letters()}
    async for letter in letters(stores.state):
        assert letter.id in topic, f"the dead letter {letter.id} ({letter.code}, {letter.document}) is not on the topic"
        value, headers = topic[letter.id]
        assert (value or b"") == letter.payload
        assert headers["shinsen-code"].decode() == letter.code
        assert headers["shinsen-reason"]


def told(counts: Counter[str]) -> str:
    """Say counts in words."""
    return ", ".join(f"{number} × {what}" for what, number in sorted(counts.items())) or "none"
