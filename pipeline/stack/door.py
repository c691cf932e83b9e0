"""The door of the stack: decode, refuse or hand to Kafka, durably on return."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from pipeline.agents.delivery import Headers
from pipeline.agents.outbox import letter_message
from pipeline.clock import Clock
from pipeline.dead_letters import RETRY_HEADER, raw_letter, refused_event_id
from pipeline.decoding import admit
from pipeline.errors import BackendUnavailable, Backpressure, InvalidEvent
from pipeline.mapping import Mappings
from pipeline.ports.runtime import Submission
from pipeline.ports.state import State
from pipeline.sources.epochs import SourceEpochs
from pipeline.submissions import accepted, not_taken, refused
from schemas.change_event import ChangeEvent, RawEvent
from schemas.messages import Analyzed
from schemas.outcome import DeadLetter
from schemas.topics import Topics, generation_topics

log = structlog.get_logger(__name__)

TAKE_S = 8.0
"""Seconds that Kafka may take over a batch."""
START_S = 5.0
RETRY_AFTER = 2.0

Decoded = list[ChangeEvent] | InvalidEvent
Reconciling = Callable[[], Awaitable[int]]
"""Returns how many events wait to be reconciled; does not raise."""


class StackDoor:
    """Takes events for `events` and `events-bulk`. Connects at the first event, and again after a failure."""

    def __init__(
        self,
        bootstrap: str,
        topics: Topics,
        prefix: str,
        *,
        state: State,
        mappings: Mappings,
        waiting: Reconciling,
        max_event: int,
        max_backlog: int,
        clock: Clock,
    ) -> None:
        self._bootstrap, self._topics, self._prefix = bootstrap, topics, prefix
        self._state, self._mappings, self._waiting = state, mappings, waiting
        self._max_event, self._max_backlog, self._clock = max_event, max_backlog, clock
        self._known_epochs: Mapping[str, int] | None = None
        self._producer: Any = None
        self._lock = asyncio.Lock()

    async def submit(self, events: Sequence[RawEvent]) -> list[Submission]:
        """See Runtime.submit."""
        await self._check_backlog(len(events))
        epochs = await self._epochs()
        decoded = await asyncio.to_thread(self._admit_all, events, epochs)
        # Refused ones first: should their letters fail, nothing was taken, and the whole batch can be sent again.
        letters = await self._bury(events, decoded)
        good = [(n, result) for n, result in enumerate(decoded) if not isinstance(result, InvalidEvent)]
        taken = dict(zip([n for n, _ in good], await self._taken([(events[n], d) for n, d in good]), strict=True))
        return [_submission(n, result, letters.get(n), taken.get(n)) for n, result in enumerate(decoded)]

    def _admit_all(self, events: Sequence[RawEvent], epochs: Mapping[str, int]) -> list[Decoded]:
        return [admit(raw, self._mappings, self._max_event, epochs) for raw in events]

    async def _epochs(self) -> Mapping[str, int]:
        """Return the epochs of sources; while the state store is away, those that it told last."""
        try:
            self._known_epochs = SourceEpochs(await self._state.epochs()).newest()
        except BackendUnavailable:
            if self._known_epochs is None:
                raise  # a token without its epoch would count as reached too early
        return self._known_epochs

    async def send_again(self, generation: str, documents: Sequence[str]) -> None:
        """Let documents be prepared from their records and applied again in a generation."""
        topic = generation_topics(self._prefix, generation, self._topics.events.partitions).analyzed
        await self._publish(
            [(topic.name, name.encode(), msgspec.msgpack.encode(Analyzed(document=name)), []) for name in documents]
        )

    async def _publish(self, messages: Sequence[tuple[str, bytes, bytes, Headers]]) -> None:
        """Send messages of our own; all are with the brokers on return. Raises BackendUnavailable."""
        producer = await self._connected()
        try:
            async with asyncio.timeout(TAKE_S):
                sent = [await producer.send(topic, value, key=key, headers=h) for topic, key, value, h in messages]
                await asyncio.gather(*sent)
        except (KafkaError, OSError, TimeoutError) as error:
            raise self._unavailable(error) from error

    async def close(self) -> None:
        """Finish what is under way and disconnect; idempotent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError, OSError, TimeoutError):
                async with asyncio.timeout(TAKE_S):  # what a broker that is away never takes, nobody was promised
                    await producer.stop()

    async def _check_backlog(self, number: int) -> None:
        waiting = await self._waiting()
        # A batch beyond the limit alone is taken when nothing waits: sent again, it would never become smaller.
        if waiting > 0 and waiting + number > self._max_backlog:
            raise Backpressure(
                f"{waiting} events wait to be reconciled (limit {self._max_backlog}); send again later",
                retry_after=RETRY_AFTER,
            )

    async def _bury(self, events: Sequence[RawEvent], decoded: Sequence[Decoded]) -> dict[int, DeadLetter]:
        now = self._clock()
        letters = {
            n: raw_letter(refused_event_id(raw), raw, result, now)
            for n, (raw, result) in enumerate(zip(events, decoded, strict=True))
            if isinstance(result, InvalidEvent)
        }
        if letters:
            name = self._topics.dead_letters.name
            await self._publish([(name, *letter_message(letter, events[n])) for n, letter in letters.items()])
            await self._state.bury(list(letters.values()))
        return letters

    async def _taken(self, events: Sequence[tuple[RawEvent, list[ChangeEvent]]]) -> list[str]:
        """Produce; return for each event its id, empty when it was not confirmed in time.

        Raises BackendUnavailable or Backpressure when none of them was.
        """
        if not events:
            return []
        producer = await self._connected()
        sent: list[asyncio.Future[Any]] = []
        with contextlib.suppress(TimeoutError):  # what was not even sent is not confirmed
            async with asyncio.timeout(TAKE_S):
                for raw, decoded in events:
                    sent.append(await self._send(producer, raw, decoded))
                await asyncio.wait(sent)
        ids = [_confirmed(raw, sent[n] if n < len(sent) else None) for n, (raw, _) in enumerate(events)]
        if not any(ids):
            raise await self._refusal(producer, sent)
        return ids

    async def _send(self, producer: Any, raw: RawEvent, decoded: Sequence[ChangeEvent]) -> "asyncio.Future[Any]":
        topic = self._topics.events_bulk if raw.lane == "bulk" else self._topics.events
        key = decoded[-1].document.encode() if decoded else raw.key
        headers = [(name, value.encode("utf-8", "surrogatepass")) for name, value in raw.headers.items()]
        try:
            coming: asyncio.Future[Any] = await producer.send(topic.name, raw.value, key=key, headers=headers)
        except (KafkaError, OSError) as error:
            coming = asyncio.get_running_loop().create_future()
            coming.set_exception(error)
        coming.add_done_callback(lambda done: done.cancelled() or done.exception())  # it is looked at, whoever waits
        return coming

    async def _refusal(self, producer: Any, sent: Sequence["asyncio.Future[Any]"]) -> Exception:
        """Return what to tell when nothing was confirmed: slow, or away."""
        errors = [done.exception() for done in sent if done.done() and not done.cancelled()]
        if not errors:
            try:
                async with asyncio.timeout(1.0):
                    await producer.client.fetch_all_metadata()
            except (KafkaError, OSError, TimeoutError) as error:
                errors = [error]
            else:
                return Backpressure(
                    f"Kafka did not confirm within {TAKE_S:g} s; send again later (what it took after all has no "
                    "second effect)",
                    retry_after=RETRY_AFTER,
                )
        return self._unavailable(errors[0])

    async def _connected(self) -> Any:
        async with self._lock:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    bootstrap_servers=self._bootstrap,
                    acks="all",
                    enable_idempotence=True,
                    max_request_size=self._topics.events.max_message,
                    request_timeout_ms=int(TAKE_S * 1000),
                )
                try:
                    async with asyncio.timeout(START_S):
                        await producer.start()
                except (KafkaError, OSError, TimeoutError) as error:
                    with contextlib.suppress(KafkaError, OSError):
                        await producer.stop()
                    raise self._unavailable(error) from error
                self._producer = producer
            return self._producer

    def _unavailable(self, error: BaseException | None) -> BackendUnavailable:
        why = str(error) or type(error).__name__
        return BackendUnavailable(f"Kafka at {self._bootstrap}: {why}; send again when it runs and is reachable")


def _confirmed(raw: RawEvent, sent: "asyncio.Future[Any] | None") -> str:
    if sent is None or not sent.done() or sent.cancelled() or sent.exception() is not None:
        return ""
    at = sent.result()
    return raw.headers.get(RETRY_HEADER) or f"{at.topic}-{at.partition}-{at.offset}"


def _submission(index: int, result: Decoded, letter: DeadLetter | None, event: str | None) -> Submission:
    if isinstance(result, InvalidEvent):
        assert letter is not None
        return refused(index, result, letter)
    if event:
        return accepted(index, event, result)
    return not_taken(index, result, "Kafka did not confirm this event in time; send it again")
