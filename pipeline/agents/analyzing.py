"""The second stage: records are mapped, cut, tokenized and searched for mentions, for one generation."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from pipeline.agents.delivery import Delivered, Times
from pipeline.agents.outbox import Outbox
from pipeline.agents.patience import Patience
from pipeline.agents.putting_aside import put_aside
from pipeline.clock import Clock
from pipeline.dead_letters import raw_letter, record_letter
from pipeline.errors import InvalidEvent
from pipeline.ports.state import State
from pipeline.prepare import Prepared, Preparer, Refused
from schemas.change_event import Lane
from schemas.record import Record
from schemas.topics import BY_REFERENCE, GenerationTopics

COLD = 8
"""Documents whose mentions are looked for together: what is ready goes on before."""


class Analyzing:
    """Takes batches of one lane and sends them on; what cannot be mapped goes on withdrawn, and is a dead letter."""

    def __init__(
        self, generation: str, topics: GenerationTopics, state: State, preparer: Preparer, outbox: Outbox, clock: Clock
    ) -> None:
        self._generation, self._topics, self._state = generation, topics, state
        self._preparer, self._outbox, self._clock = preparer, outbox, clock
        self._patience = Patience(preparer.models_work)
        self.announces = False
        """Whether its generation is live: else nothing here ends an event."""

    async def take(self, batch: Sequence[Delivered], lane: Lane) -> None:
        """Send on what the batch holds. Raises BackendUnavailable: then all of it is to be taken again."""
        newest, times, owed = await self._newest(batch)
        done = await self._state.settled(self._generation, list(newest))
        waiting = [record for document, record in newest.items() if done.get(document, "") < record.position]
        # Delivered again: whether the ends of its events were announced before is not known.
        ended = [record for document, record in newest.items() if record not in waiting and record.origins]
        ended += owed
        await self._done(ended, times, lane)
        if not waiting:
            return
        prepared: list[Prepared | Refused] = []

        async def light(records: Sequence[Record]) -> None:
            prepared.extend(await self._preparer.analyzed(records, lane, beside=COLD))

        aside = await self._patience.each(waiting, lambda record: record.document, light)
        refused = [Refused(record, error) for record, error in aside]
        refused += [one for one in prepared if isinstance(one, Refused)]
        ready = [one for one in prepared if isinstance(one, Prepared)]
        await self._forward([one for one in ready if not one.missing], times, lane)
        await self._bury(refused, times, lane)
        cold = [one for one in ready if one.missing]
        for start in range(0, len(cold), COLD):
            await self._cold(cold[start : start + COLD], times, lane)

    async def _newest(self, batch: Sequence[Delivered]) -> tuple[dict[str, Record], dict[str, Times], list[Record]]:
        """Decode the records, of several versions the newest; others than records are dead letters.

        Return also records with the events that a message names and the newest version does not: they have ended since
        the message was sent, and whether that was announced is not known here.
        """
        newest: dict[str, Record] = {}
        events: dict[str, list[str]] = {}
        times: dict[str, Times] = {}
        strangers: list[Delivered] = []
        decoded = await asyncio.to_thread(lambda: [_record(message) for message in batch])
        for message, record in zip(batch, decoded, strict=True):
            if record is None:
                strangers.append(message)
                continue
            events.setdefault(record.document, []).extend(record.origins)
            if record.document not in newest or record.position >= newest[record.document].position:
                newest[record.document], times[record.document] = record, message.times
        if strangers:
            await self._bury_strangers([message for message in strangers if message.raw.value is not None])
        without = [m.key for m in batch if BY_REFERENCE in m.raw.headers]
        newest |= await self._state.records(without) if without else {}
        named = [msgspec.structs.replace(record, origins=tuple(events.get(n, ()))) for n, record in newest.items()]
        return newest, times, _no_more_named(named, newest)

    async def _bury_strangers(self, messages: Sequence[Delivered]) -> None:
        error = InvalidEvent("not_a_record", "a message on the topic of records is none of ours; see who writes to it")
        letters = [raw_letter(message.id, message.raw, error, self._clock()) for message in messages]
        pairs = [(one, message.raw) for one, message in zip(letters, messages, strict=True)]
        await put_aside(self._state, self._outbox, pairs)

    async def _cold(self, batch: Sequence[Prepared], times: dict[str, Times], lane: Lane) -> None:
        async def mention(some: Sequence[Prepared]) -> None:
            await self._preparer.mention(some, lane)

        aside = await self._patience.each(batch, lambda one: one.record.document, mention)
        await self._forward([one for one in batch if not one.missing], times, lane)
        await self._bury([Refused(one.record, error) for one, error in aside], times, lane)

    async def _done(self, ended: Sequence[Record], times: dict[str, Times], lane: Lane) -> None:
        await self._outbox.done(self._topics, [(record, times.get(record.document, {})) for record in ended], lane)

    async def _forward(self, prepared: Sequence[Prepared], times: dict[str, Times], lane: Lane) -> None:
        await self._outbox.analyzed(self._topics, [(p, times.get(p.record.document, {})) for p in prepared], lane)

    async def _bury(self, refused: Sequence[Refused], times: dict[str, Times], lane: Lane) -> None:
        """Put records aside, and withdraw them: an older version must not go on standing."""
        if not refused:
            return
        # As they stand now: which of their events have not ended yet, and whether a newer version is on its way.
        standing = await self._state.records([one.record.document for one in refused])
        # Events that a record does not name any more ended when it was put aside, before it was delivered again.
        await self._done(_no_more_named([one.record for one in refused], standing), times, lane)
        withdrawn: list[Prepared] = []
        for one in refused:
            record = standing.get(one.record.document)
            if record is None or record.position != one.record.position:
                continue
            buried = record_letter(record, one.error, "map", self._clock(), generation=self._generation)
            await put_aside(self._state, self._outbox, [(buried.letter, None)])
            if self.announces:
                await self._state.announce(buried.superseded)
            withdrawn.append(Prepared(record=record, stage="full", withdrawn=True))
        await self._forward(withdrawn, times, lane)


def _no_more_named(sent: Sequence[Record], now: Mapping[str, Record]) -> list[Record]:
    """Return records with the events that they named when they were sent and do not name now."""
    owed: list[Record] = []
    for record in sent:
        named = now[record.document].origins if record.document in now else ()
        if left := tuple(event for event in record.origins if event not in named):
            owed.append(msgspec.structs.replace(record, origins=left))
    return owed


def _record(message: Delivered) -> Record | None:
    """Return the record of a message, None for what is none; a tombstone (an erasure) says nothing here."""
    try:
        record = msgspec.json.decode(message.raw.value or b"", type=Record)
    except msgspec.MsgspecError:
        return None
    return record if record.document == message.key else None
