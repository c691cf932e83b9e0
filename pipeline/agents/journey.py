"""The journey of a batch of events on the stack: the steps of the embedded profile, up to their outcomes."""

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from pipeline.agents.announcer import Announcer
from pipeline.apply import Applier
from pipeline.clock import Clock
from pipeline.dead_letters import RETRY_HEADER, raw_letter, record_letter
from pipeline.decoding import admit
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.mapping import Mappings
from pipeline.ports.state import State
from pipeline.prepare import Prepared, Preparer, Refused
from pipeline.reconcile import Arrived, Reconciler
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome

BATCH = 64
"""Documents published at once."""


class Delivered(msgspec.Struct, frozen=True):
    """A message of the source topic."""

    id: str
    """`<topic>-<partition>-<offset>`, or the id that a retried payload first had."""
    raw: RawEvent


class _Decoded(msgspec.Struct):
    arrived: list[Arrived] = []
    ended: list[Outcome] = []
    letters: list[tuple[DeadLetter, RawEvent | None]] = []


def delivered(topic: str, partition: int, offset: int, raw: RawEvent) -> Delivered:
    """Return a message with its event id."""
    return Delivered(raw.headers.get(RETRY_HEADER) or f"{topic}-{partition}-{offset}", raw)


class Journey:
    """Takes batches to their end. Everything may be done again: it ends the same way, in every store.

    `take` returns when each event of the batch has its one outcome, in the state store and on the topic.
    """

    def __init__(
        self,
        *,
        state: State,
        mappings: Mappings,
        preparer: Preparer,
        applier: Applier,
        announcer: Announcer,
        max_event: int,
        clock: Clock,
    ) -> None:
        self._state, self._mappings, self._clock, self._max_event = state, mappings, clock, max_event
        self._preparer, self._applier, self._announcer = preparer, applier, announcer
        self._reconciler = Reconciler(state)

    async def catch_up(self) -> int:
        """Finish what the last run had begun and no event will bring again (links above all)."""
        await self._applier.open()
        after, number = "", 0
        while page := await self._state.pending(self._applier.generation, after=after):
            await self._index([pending.document for pending in page])
            after, number = page[-1].document, number + len(page)
        return number

    async def take(self, batch: Sequence[Delivered]) -> None:
        """Bring a batch to its end. Raises BackendUnavailable: then the whole batch is to be taken again."""
        decoded = await asyncio.to_thread(self._decode_all, batch)
        result = await self._reconciler.reconcile(decoded.arrived)
        raws = {message.id: message.raw for message in batch}
        for arrived, error in result.refused:
            raw = raws.get(arrived.event_id) or raws[arrived.event_id.rpartition(".")[0]]
            decoded.letters.append((raw_letter(arrived.event_id, raw, error, self._clock()), raw))
        await self._bury(decoded.letters)
        await self._state.announce([*decoded.ended, *result.ended])
        await self._index([record.document for record in result.advanced])
        await self._announce(decoded)

    # ---------------------------------------------------------------- decoding

    def _decode_all(self, batch: Sequence[Delivered]) -> _Decoded:
        done = _Decoded()
        for message in batch:
            events = admit(message.raw, self._mappings, self._max_event)
            if isinstance(events, InvalidEvent):
                done.letters.append((raw_letter(message.id, message.raw, events, self._clock()), message.raw))
            elif not events:
                # Tombstones, heartbeats and transaction markers say nothing new.
                done.ended.append(Outcome(event=message.id, document="", position="", outcome="duplicate"))
            else:
                done.arrived += [Arrived(_numbered(message.id, n), event) for n, event in enumerate(events)]
        return done

    # ---------------------------------------------------------------- indexing

    async def _index(self, documents: Iterable[str]) -> None:
        """Bring documents, and then those that must be linked anew because of them, up to their records."""
        waiting = list(dict.fromkeys(documents))
        while waiting:
            some, waiting = waiting[:BATCH], waiting[BATCH:]
            records = await self._state.records(some)
            # Read anew: a batch may hold several versions of one document, and only the newest counts.
            prepared = await self._preparer.light(list(records.values()), "full", "live")
            ready = await asyncio.gather(*(self._ready(one) for one in prepared))
            published = await self._applier.publish(ready)
            waiting += [document for document in published.relinks if document not in waiting]

    async def _ready(self, prepared: Prepared | Refused) -> Prepared:
        if isinstance(prepared, Prepared):
            return await self._preparer.heavy(prepared, "live")
        buried = record_letter(prepared.record, prepared.error, "map", self._clock())
        await self._bury([(buried.letter, None)])
        await self._state.announce(buried.superseded)
        # An older version must not go on standing.
        return Prepared(record=prepared.record, stage="full", withdrawn=True)

    # ---------------------------------------------------------------- ends

    async def _bury(self, letters: Sequence[tuple[DeadLetter, RawEvent | None]]) -> None:
        if letters:
            await self._announcer.dead_letters(letters)
            await self._state.bury([letter for letter, _ in letters])

    async def _announce(self, decoded: _Decoded) -> None:
        """Say on the topic how each event ended; what the state store knows is the truth."""
        places = {a.event_id: (a.event.document, a.event.position) for a in decoded.arrived}
        places |= {o.event: (o.document, o.position) for o in decoded.ended}
        places |= {letter.event: (letter.document, letter.position) for letter, _ in decoded.letters}
        known = await self._state.outcomes(list(places))
        open_ended = [event for event in places if event not in known]
        if open_ended:
            raise BackendUnavailable(f"{len(open_ended)} events have not ended yet, {open_ended[0]} for one; again")
        await self._announcer.outcomes(
            [
                Outcome(event=event, document=document, position=position, outcome=known[event])
                for event, (document, position) in places.items()
            ]
        )


def _numbered(base: str, number: int) -> str:
    return base if number == 0 else f"{base}.{number}"
