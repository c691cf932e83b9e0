"""What the agents say to others: outcomes and dead letters, on topics."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from pipeline.errors import BackendUnavailable
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome
from schemas.topics import Topics

Headers = list[tuple[str, bytes]]


class Announcer:
    """Sends and waits until the brokers have it. Repeats after a crash carry the same ids."""

    def __init__(self, bootstrap: str, topics: Topics) -> None:
        self._bootstrap, self._topics = bootstrap, topics
        self._producer: AIOKafkaProducer | None = None

    async def open(self) -> None:
        """Connect."""
        self._producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap, acks="all", enable_idempotence=True)
        try:
            await self._producer.start()
        except (KafkaError, OSError) as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Disconnect; idempotent."""
        if self._producer is not None:
            await self._producer.stop()

    async def outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Announce how events ended."""
        name = self._topics.outcomes.name
        await self._send([(name, o.document.encode(), msgspec.json.encode(o), []) for o in outcomes])

    async def dead_letters(self, letters: Sequence[tuple[DeadLetter, RawEvent | None]]) -> None:
        """Put events aside, whole, with the headers they came with and why they are here."""
        name = self._topics.dead_letters.name
        await self._send([(name, *letter_message(letter, raw)) for letter, raw in letters])

    async def _send(self, messages: Sequence[tuple[str, bytes, bytes, Headers]]) -> None:
        if self._producer is None:
            raise BackendUnavailable("Kafka: the announcer is not open")
        try:
            sent = [
                await self._producer.send(topic, value, key=key, headers=headers)
                for topic, key, value, headers in messages
            ]
            await asyncio.gather(*sent)
        except (KafkaError, OSError) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> BackendUnavailable:
        why = f"{type(error).__name__} {error}"
        return BackendUnavailable(f"Kafka at {self._bootstrap}: {why}; check that it runs and is reachable")


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
        "shinsen-position": letter.position,
        "shinsen-topic": raw.topic if raw is not None else "",
    }
    return [(name, text.encode("utf-8", "surrogatepass")) for name, text in {**given, **why}.items()]
