"""The third stage: documents are embedded and published in the indexes of one generation; their events end."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar

import msgspec

from pipeline.agents.delivery import Delivered, Times, milliseconds
from pipeline.agents.outbox import Outbox
from pipeline.agents.patience import Patience
from pipeline.agents.putting_aside import put_aside
from pipeline.apply import Applier
from pipeline.clock import Clock
from pipeline.dead_letters import raw_letter, record_letter
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.ports.state import State
from pipeline.prepare import Prepared, Preparer, Refused
from schemas.change_event import Lane
from schemas.messages import Analyzed
from schemas.outcome import Outcome
from schemas.topics import APPLIED, GenerationTopics

T = TypeVar("T")

COLD = 8
"""Documents that are embedded together: what is ready is published before."""
REFERRED = 8
"""Documents prepared together that a batch only refers to: the reference is small, the document may be as large as an
event."""
AT_ONCE: dict[Lane, int] = {"live": 64, "bulk": 16}
"""Documents published at once: a change waits for the imports that are being published, but not for long."""
ROUNDS = 20
"""Times that a document may be in another writer's way before the batch is taken again."""


class _Taken(msgspec.Struct):
    """What a batch asks for."""

    inline: dict[str, Prepared] = {}
    referred: set[str] = set()
    times: dict[str, Times] = {}
    origins: dict[str, tuple[str, str]] = {}
    """Event to (document, position)."""
    said: set[str] = set()
    """Events whose ends were announced."""


class Applying:
    """Takes batches of one lane. `take` returns when each document is in every index, and its events are announced."""

    def __init__(
        self,
        topics: GenerationTopics,
        state: State,
        preparer: Preparer,
        applier: Applier,
        outbox: Outbox,
        clock: Clock,
    ) -> None:
        self.applier = applier
        self._topics, self._state, self._preparer = topics, state, preparer
        self._outbox, self._clock = outbox, clock
        self._patience = Patience(preparer.models_work)

    async def take(self, batch: Sequence[Delivered], lane: Lane) -> None:
        """Publish what the batch holds. Raises BackendUnavailable: then all of it is to be taken again."""
        taken = await self._decoded(batch)
        wanted = [*taken.inline, *(taken.referred - taken.inline.keys())]
        todo = await self._state.unfinished(self.applier.generation, wanted, announces=self.applier.announces)
        referred = sorted(taken.referred & todo)
        inline = [one for name, one in taken.inline.items() if name in todo and name not in taken.referred]
        again = await self._all(inline, taken, lane)
        again += referred
        for _ in range(ROUNDS):
            if not again:
                break
            again = await self._referred(again, taken, lane)
        if again:
            raise BackendUnavailable(f"{again[0]}: other writers are in the way all the time; again")
        await self._announce(taken)

    # ---------------------------------------------------------------- what is asked for

    async def _decoded(self, batch: Sequence[Delivered]) -> _Taken:
        taken = _Taken()
        strangers: list[Delivered] = []
        decoded = await asyncio.to_thread(lambda: [_analyzed(message) for message in batch])
        for message, analyzed in zip(batch, decoded, strict=True):
            if analyzed is None:
                strangers.append(message)
            elif analyzed.prepared is None:
                taken.referred.add(analyzed.document)
                taken.origins.update(dict.fromkeys(analyzed.origins, (analyzed.document, analyzed.position)))
                if analyzed.position or analyzed.document not in taken.times:
                    taken.times[analyzed.document] = message.times if analyzed.position else {}
            else:
                _take_inline(taken, analyzed.prepared, message.times)
        if strangers:
            await self._bury_strangers(strangers)
        return taken

    async def _bury_strangers(self, messages: Sequence[Delivered]) -> None:
        error = InvalidEvent("not_analyzed", "a message on a topic of analyzed documents is not ours; see who writes")
        letters = [raw_letter(message.id, message.raw, error, self._clock()) for message in messages]
        pairs = [(one, message.raw) for one, message in zip(letters, messages, strict=True)]
        await put_aside(self._state, self._outbox, pairs)

    async def _from_records(self, documents: Sequence[str], taken: _Taken, lane: Lane) -> list[Prepared]:
        """Prepare documents as their records stand now; what cannot be mapped is put aside and withdrawn."""
        records = await self._state.records(documents)
        for record in records.values():
            taken.origins.update(dict.fromkeys(record.origins, (record.document, record.position)))
        light = await self._preparer.analyzed(list(records.values()), lane)
        refused = [one for one in light if isinstance(one, Refused)]
        ready = [one for one in light if isinstance(one, Prepared)]
        cold = [one for one in ready if one.missing]

        async def mention(some: Sequence[Prepared]) -> None:
            await self._preparer.mention(some, lane)

        aside = await self._patience.each(cold, lambda one: one.record.document, mention) if cold else []
        gone = {one.record.document for one, _ in aside}
        refused += [Refused(one.record, error) for one, error in aside]
        withdrawn = [await self._withdrawn(one, "map") for one in refused]
        return [*(one for one in ready if one.record.document not in gone), *withdrawn]

    # ---------------------------------------------------------------- publishing

    async def _referred(self, documents: Sequence[str], taken: _Taken, lane: Lane) -> list[str]:
        """Publish documents as their records say, a few at a time; return those to publish again."""
        again: list[str] = []
        for part in _parts(documents, REFERRED):
            again += await self._all(await self._from_records(part, taken, lane), taken, lane)
        return again

    async def _all(self, batch: Sequence[Prepared], taken: _Taken, lane: Lane) -> list[str]:
        """Publish documents, those that need vectors last; return those to publish again.

        The ends of a part are announced when it is published: who waits for it waits for no other.
        """
        if not batch:
            return []
        cold = await self._preparer.with_cached_vectors(batch)
        names = {one.record.document for one in cold}
        ready = [one for one in batch if one.record.document not in names]
        again: list[str] = []
        for part in _parts(ready, AT_ONCE[lane]):
            again += await self._publish(part)
            await self._announce(taken, part)
        async with aclosing(self._embedding(cold, lane)) as embedded:
            async for part in embedded:
                again += await self._publish(part)
                await self._announce(taken, part)
        return again

    async def _embedding(self, batch: Sequence[Prepared], lane: Lane) -> AsyncGenerator[Sequence[Prepared], None]:
        """Yield parts with their vectors; the models work on the next one while one is published."""
        parts = _parts(batch, COLD)
        coming = asyncio.create_task(self._embedded(parts[0], lane)) if parts else None
        try:
            for following in [*parts[1:], None]:
                if coming is None:
                    return
                part = await coming
                coming = asyncio.create_task(self._embedded(following, lane)) if following else None
                yield part
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _embedded(self, batch: Sequence[Prepared], lane: Lane) -> list[Prepared]:
        async def embed(some: Sequence[Prepared]) -> None:
            await self._preparer.embed(some, lane)

        aside = await self._patience.each(batch, lambda one: one.record.document, embed)
        gone = {one.record.document for one, _ in aside}
        withdrawn = [await self._withdrawn(Refused(one.record, error), "apply") for one, error in aside]
        return [*(one for one in batch if one.record.document not in gone), *withdrawn]

    async def _publish(self, batch: Sequence[Prepared]) -> list[str]:
        """Publish; a document on which that fails for no known reason is put aside in the end."""
        again: list[str] = []
        relinks: list[str] = []

        async def publish(some: Sequence[Prepared]) -> None:
            published = await self.applier.publish(some)
            again.extend(published.again)
            relinks.extend(published.relinks)

        for one, error in await self._patience.each(batch, lambda p: p.record.document, publish):
            await publish([await self._withdrawn(Refused(one.record, error), "apply")])
        await self._outbox.references(self._topics, relinks)
        return again

    async def _withdrawn(self, refused: Refused, stage: str) -> Prepared:
        """Put a record aside, and withdraw the document: an older version must not go on standing."""
        document = refused.record.document
        standing = (await self._state.records([document])).get(document, refused.record)
        record = standing if standing.position == refused.record.position else refused.record
        buried = record_letter(record, refused.error, stage, self._clock(), generation=self.applier.generation)
        await put_aside(self._state, self._outbox, [(buried.letter, None)])
        if self.applier.announces:
            await self._state.announce(buried.superseded)
        return Prepared(record=record, stage="full", withdrawn=True)

    # ---------------------------------------------------------------- ends

    async def _announce(self, taken: _Taken, published: Sequence[Prepared] | None = None) -> None:
        """Say on the topic how events ended, those of `published` or all; what the state store knows is the truth."""
        left = {event: origin for event, origin in taken.origins.items() if event not in taken.said}
        if published is not None:
            documents = {one.record.document for one in published}
            left = {event: origin for event, origin in left.items() if origin[0] in documents}
        if not self.applier.announces or not left:
            return
        applied = milliseconds(time.time())
        known = await self._state.outcomes(list(left))
        said: list[tuple[Outcome, Times]] = []
        for event, outcome in known.items():
            document, position = left[event]
            ended = Outcome(event=event, document=document, position=position, outcome=outcome)
            said.append((ended, {**taken.times.get(document, {}), APPLIED: applied}))
        await self._outbox.outcomes(said)
        taken.said.update(known)

    async def send_references(self, documents: Iterable[str]) -> None:
        """Have documents applied as their records say, by whoever has their partitions.

        The messages name the events of the records: whoever applies one may end before it announced them, after which
        the record does not name them any more, and no other message may be there that does.
        """
        for part in _parts(list(documents), REFERRED):
            records = await self._state.records(part)
            await self._outbox.references(self._topics, part, {name: one.origins for name, one in records.items()})


def _parts(batch: Sequence[T], size: int) -> list[Sequence[T]]:
    return [batch[start : start + size] for start in range(0, len(batch), size)]


def _take_inline(taken: _Taken, prepared: Prepared, times: Times) -> None:
    record = prepared.record
    taken.origins.update(dict.fromkeys(record.origins, (record.document, record.position)))
    before = taken.inline.get(record.document)
    if before is None or record.position >= before.record.position:
        taken.inline[record.document], taken.times[record.document] = prepared, times


def _analyzed(message: Delivered) -> Analyzed | None:
    try:
        return msgspec.msgpack.decode(message.raw.value or b"", type=Analyzed)
    except msgspec.MsgspecError:
        return None
