"""What the stages send: records, analyzed documents, outcomes, dead letters."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from pipeline.agents.delivery import Headers, Times, as_headers
from pipeline.errors import BackendUnavailable
from schemas.change_event import Lane, RawEvent
from schemas.messages import Analyzed, Prepared
from schemas.outcome import DeadLetter, Outcome
from schemas.record import Record
from schemas.topics import BY_REFERENCE, GenerationTopics, Topics

Message = tuple[str, bytes, bytes, Headers]
"""Topic, key, value, headers."""
LARGEST_INLINE = 256 << 10
"""Bytes of an analyzed document; a larger one goes by reference."""
AT_ONCE = 1_000
"""Messages that wait for the brokers at a time."""
_ROOM = 64 << 10
"""Of a message's limit, for its key and headers."""


class Outbox:
    """Sends and waits until the brokers have it. Repeats after a crash carry the same ids.

    Every call raises BackendUnavailable when Kafka does not answer; the next one connects again.
    """

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._bootstrap, self._topics = bootstrap, topics
        self._producer: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()

    async def open(self) -> None:
        """Connect."""
        await self._connected()

    async def close(self) -> None:
        """Disconnect; idempotent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, OSError):  # what was not confirmed was not acknowledged either
                await producer.stop()

    async def records(self, records: Iterable[tuple[Record, Times]]) -> None:
        """Send records to the topic of their lane; the columns of a very large one stay in the state store."""
        await self.send(self._record(record, times) for record, times in records)

    def _record(self, record: Record, times: Times) -> Message:
        topic = self._topics.records_bulk if record.lane == "bulk" else self._topics.records
        body, headers = msgspec.json.encode(record), as_headers(times)
        if len(body) > topic.max_message - _ROOM:
            body = msgspec.json.encode(msgspec.structs.replace(record, columns={}))
            headers.append((BY_REFERENCE, b"1"))
        return topic.name, record.document.encode(), body, headers

    async def analyzed(self, topics: GenerationTopics, prepared: Sequence[tuple[Prepared, Times]], lane: Lane) -> None:
        """Send what is ready for the indexes of a generation; large documents by reference."""
        topic = topics.analyzed_bulk if lane == "bulk" else topics.analyzed
        messages = await asyncio.to_thread(lambda: [_analyzed(topic.name, one, times) for one, times in prepared])
        await self.send(messages)

    async def done(self, topics: GenerationTopics, records: Sequence[tuple[Record, Times]], lane: Lane) -> None:
        """Send on records that are in the indexes already, so that the ends of their events are announced again."""
        topic = topics.analyzed_bulk if lane == "bulk" else topics.analyzed
        await self.send([reference(topic.name, record, times) for record, times in records])

    async def references(
        self, topics: GenerationTopics, documents: Iterable[str], origins: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        """Ask for documents to be applied again as their records say, by whoever has their partitions.

        `origins`: by document the events whose ends are to be announced then, whatever the record names by that time.
        """
        named, topic = origins or {}, topics.analyzed_bulk.name
        asked = (Analyzed(document=name, origins=named.get(name, ())) for name in documents)
        await self.send((topic, one.document.encode(), msgspec.msgpack.encode(one), []) for one in asked)

    async def outcomes(self, outcomes: Sequence[tuple[Outcome, Times]]) -> None:
        """Announce how events ended."""
        name = self._topics.outcomes.name
        await self.send([(name, o.document.encode(), msgspec.json.encode(o), as_headers(t)) for o, t in outcomes])

    async def dead_letters(self, letters: Sequence[tuple[DeadLetter, RawEvent | None]]) -> None:
        """Put events aside, whole, with the headers they came with and why they are here."""
        topic = self._topics.dead_letters
        messages: list[Message] = []
        for letter, raw in letters:
            key, value, headers = letter_message(letter, raw)
            if len(value) > topic.max_message - _ROOM:  # of a source topic whose limit is above ours
                value, headers = b"", [*headers, (BY_REFERENCE, b"1")]
            messages.append((topic.name, key, value, headers))
        await self.send(messages)

    async def send(self, messages: Iterable[Message]) -> None:
        """Send to any topics, some at a time; return when all are confirmed."""
        coming = iter(messages)
        while part := list(itertools.islice(coming, AT_ONCE)):
            await self._send(part)

    async def _send(self, messages: Sequence[Message]) -> None:
        producer = await self._connected()
        try:
            sent = [
                await producer.send(topic, value, key=key, headers=headers) for topic, key, value, headers in messages
            ]
            await asyncio.gather(*sent)
        except (KafkaError, OSError) as error:
            await self.close()  # an idempotent producer may be of no more use after an error
            raise self._unavailable(error) from error

    async def _connected(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._producer is None:
                limit = max(topic.max_message for topic in self._topics.all())
                producer = AIOKafkaProducer(
                    bootstrap_servers=self._bootstrap, acks="all", enable_idempotence=True, max_request_size=limit
                )
                try:
                    await producer.start()
                except (KafkaError, OSError) as error:
                    await producer.stop()
                    raise self._unavailable(error) from error
                self._producer = producer
            return self._producer

    def _unavailable(self, error: Exception) -> BackendUnavailable:
        why = f"{type(error).__name__} {error}"
        return BackendUnavailable(f"Kafka at {self._bootstrap}: {why}; check that it runs and is reachable")


def _analyzed(topic: str, prepared: Prepared, times: Times) -> Message:
    document = prepared.record.document
    record = msgspec.structs.replace(prepared.record, columns={})
    message = Analyzed(document=document, prepared=msgspec.structs.replace(prepared, record=record, vectors=[]))
    body = msgspec.msgpack.encode(message)
    if len(body) > LARGEST_INLINE:
        return reference(topic, record, times)
    return topic, document.encode(), body, as_headers(times)


def reference(topic: str, record: Record, times: Times) -> Message:
    """Return a reference to a record, which says which events end with it."""
    message = Analyzed(document=record.document, origins=record.origins, position=record.position)
    return topic, record.document.encode(), msgspec.msgpack.encode(message), as_headers(times)


def letter_message(letter: DeadLetter, raw: RawEvent | None) -> tuple[bytes, bytes, Headers]:
    """Return key, value and headers of a dead letter on its topic: the event as it came, and why it is there."""
    return _key(letter, raw), letter.payload, _why(letter, raw)


def _key(letter: DeadLetter, raw: RawEvent | None) -> bytes:
    given = raw.key if raw is not None else None
    return given if given is not None else letter.document.encode()


def _why(letter: DeadLetter, raw: RawEvent | None) -> Headers:
    given: Mapping[str, str] = raw.headers if raw is not None else letter.headers
    why = {
        "shinsen-event": letter.event,
        "shinsen-letter": letter.id,
        "shinsen-code": letter.code,
        "shinsen-reason": letter.reason,
        "shinsen-stage": letter.stage,
        "shinsen-document": letter.document,
        "shinsen-generation": letter.generation,
        "shinsen-position": letter.position,
        "shinsen-attempts": str(letter.attempts),
        # An event's id is `<topic>-<partition>-<offset>`: of what is found out later it still says from where.
        "shinsen-topic": raw.topic if raw is not None else letter.event.rpartition("-")[0].rpartition("-")[0],
    }
    return [(name, text.encode("utf-8", "surrogatepass")) for name, text in {**given, **why}.items()]
