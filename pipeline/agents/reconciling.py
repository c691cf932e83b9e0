"""The first stage: events of source topics become records."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import msgspec

from pipeline.agents.delivery import Delivered, Times, milliseconds
from pipeline.agents.outbox import Outbox
from pipeline.agents.patience import Patience
from pipeline.agents.putting_aside import put_aside
from pipeline.clock import Clock
from pipeline.dead_letters import RETRY_HEADER, raw_letter, retried_letter
from pipeline.decoding import admit
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.mapping import Mappings
from pipeline.ports.state import State
from pipeline.reconcile import Arrived, Reconciler
from pipeline.sources.epochs import SourceEpochs
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome
from schemas.record import Record
from schemas.topics import RECONCILED

RESENDS = 10
"""Rounds in which another worker may have written a newer version of a record that was just sent."""


class _Decoded(msgspec.Struct):
    arrived: list[Arrived] = []
    ended: list[Outcome] = []
    letters: list[tuple[DeadLetter, RawEvent | None]] = []


class Reconciling:
    """Takes batches of one lane. Everything may be done again: it ends the same way.

    `take` returns when each event is in the records, in the state store and on the topic, or has its
    outcome in both.
    """

    def __init__(
        self,
        state: State,
        mappings: Mappings,
        reconciler: Reconciler,
        outbox: Outbox,
        *,
        max_event: int,
        clock: Clock,
    ) -> None:
        self._state, self._mappings, self._reconciler, self._outbox = state, mappings, reconciler, outbox
        self._max_event, self._clock = max_event, clock
        # What comes later in a partition must not count as read before what came first has ended.
        self._patience = Patience(_no_models, in_order=True)

    async def take(self, batch: Sequence[Delivered]) -> None:
        """Bring a batch into the records. Raises BackendUnavailable: then all of it is to be taken again.

        A message that the state store never takes, or on which we fail again and again, is put aside.
        """
        named, letters = await self._named(batch)
        ends = {message.place: message.offset + 1 for message in batch}
        left = dict(ends)

        async def bring(some: Sequence[Delivered]) -> None:
            whole = len(some) == len(batch)
            await self._bring(some, ends if whole else {}, letters)
            if whole:
                left.clear()

        aside = await self._patience.each(named, lambda message: message.id, bring)
        if aside:
            await self._put_aside(aside, letters)
        if left:  # done one by one: how far all is read is known only now
            await self._state.note_sources([], left)

    async def _named(self, batch: Sequence[Delivered]) -> tuple[list[Delivered], dict[str, str]]:
        """Return the messages, retries under the id that they first had, and the letters that these try again, by id.

        A message that only says that it is a retry keeps its own id: else it could end somebody else's event.
        """
        named: list[Delivered] = []
        letters: dict[str, str] = {}
        for message in batch:
            said = retried_letter(message.raw)
            letter = await self._state.dead_letter(said) if said else None
            if letter is not None and letter.event and letter.event == message.raw.headers[RETRY_HEADER]:
                letters[letter.event] = letter.id
                named.append(msgspec.structs.replace(message, id=letter.event))
            else:
                named.append(message)
        return named, letters

    async def _bring(self, batch: Sequence[Delivered], ends: Mapping[str, int], retries: Mapping[str, str]) -> None:
        # Read with each batch: an epoch that was declared holds for all that came after it.
        epochs = SourceEpochs(await self._state.epochs())
        decoded = await asyncio.to_thread(self._decode_all, batch, epochs)
        messages = {message.id: message for message in batch}
        hand_on = partial(self._send, messages=messages)
        result = await self._reconciler.reconcile(decoded.arrived, ends, hand_on)
        if retried := [retries[message.id] for message in batch if message.id in retries]:
            await self._state.resolve(retried)
        for arrived, error in result.refused:
            raw = _origin(messages, arrived.event_id).raw
            decoded.letters.append((raw_letter(arrived.event_id, raw, error, self._clock()), raw))
        if decoded.letters:
            await put_aside(self._state, self._outbox, decoded.letters)
        ended = [*decoded.ended, *result.ended]
        if ended:
            await self._state.announce(ended)
        await self._send(result.advanced, messages)
        known = await self._state.outcomes([one.event for one in result.again]) if result.again else {}
        again = [one for one in result.again if one.event in known]
        await self._announce([*ended, *again, *(_buried(letter) for letter, _ in decoded.letters)], messages)

    async def _put_aside(self, aside: Sequence[tuple[Delivered, InvalidEvent]], retries: Mapping[str, str]) -> None:
        if retried := [retries[message.id] for message, _ in aside if message.id in retries]:
            await self._state.resolve(retried)
        letters = [(raw_letter(m.id, m.raw, error, self._clock()), m.raw) for m, error in aside]
        await put_aside(self._state, self._outbox, letters)
        await self._announce([_buried(letter) for letter, _ in letters], {m.id: m for m, _ in aside})

    # ---------------------------------------------------------------- decoding

    def _decode_all(self, batch: Sequence[Delivered], epochs: SourceEpochs) -> _Decoded:
        done = _Decoded()
        for message in batch:
            events = admit(message.raw, self._mappings, self._max_event, epochs.of(message.id))
            if isinstance(events, InvalidEvent):
                done.letters.append((raw_letter(message.id, message.raw, events, self._clock()), message.raw))
            elif not events:
                # Tombstones, heartbeats and transaction markers say nothing new.
                done.ended.append(Outcome(event=message.id, document="", position="", outcome="duplicate"))
            else:
                done.arrived += [Arrived(_numbered(message.id, n), event) for n, event in enumerate(events)]
        return done

    # ---------------------------------------------------------------- records

    async def _send(self, advanced: Iterable[Record], messages: dict[str, Delivered]) -> None:
        """Send the newest version of each record; the topic must not end on an older one.

        A record's events may come through several partitions, so that another worker may have written a
        newer version, and sent it, before this one was sent.
        """
        newest: dict[str, Record] = {}
        for record in advanced:
            if record.document not in newest or record.position >= newest[record.document].position:
                newest[record.document] = record
        times = {document: self._times(record, messages) for document, record in newest.items()}
        sending = newest
        for _ in range(RESENDS if newest else 0):
            await self._outbox.records([(record, times[document]) for document, record in sending.items()])
            positions = await self._state.positions(list(sending))
            newer = [document for document, at in positions.items() if at > sending[document].position]
            sending = await self._state.records(newer) if newer else {}
            if not sending:
                return
        if sending:
            first = next(iter(sending))
            raise BackendUnavailable(f"{first}: its record changes faster than it can be sent; again")

    def _times(self, record: Record, messages: dict[str, Delivered]) -> Times:
        origin = _found(messages, record.origins[-1]) if record.origins else None
        return {**(origin.times if origin else {}), RECONCILED: milliseconds(time.time())}

    # ---------------------------------------------------------------- ends

    async def _announce(self, ended: Sequence[Outcome], messages: dict[str, Delivered]) -> None:
        """Say on the topic how events ended here; what the state store knows is the truth."""
        if not ended:
            return
        known = await self._state.outcomes([outcome.event for outcome in ended])
        reconciled = milliseconds(time.time())
        said: list[tuple[Outcome, Times]] = []
        for outcome in ended:
            times = {**_origin(messages, outcome.event).times, RECONCILED: reconciled}
            said.append((msgspec.structs.replace(outcome, outcome=known.get(outcome.event, outcome.outcome)), times))
        await self._outbox.outcomes(said)


async def _no_models() -> bool:
    return True


def _buried(letter: DeadLetter) -> Outcome:
    return Outcome(event=letter.event, document=letter.document, position=letter.position, outcome="dead_letter")


def _numbered(base: str, number: int) -> str:
    return base if number == 0 else f"{base}.{number}"


def _found(messages: dict[str, Delivered], event: str) -> Delivered | None:
    return messages.get(event) or messages.get(event.rpartition(".")[0])


def _origin(messages: dict[str, Delivered], event: str) -> Delivered:
    found = _found(messages, event)
    if found is None:
        raise KeyError(f"no message of this batch is event {event}")
    return found
