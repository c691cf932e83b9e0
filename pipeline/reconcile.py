"""Reconcile: only events that advance the position of their key pass; everything else ends here, counted."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

import msgspec

from pipeline.errors import InvalidEvent
from pipeline.ports.state import Advance, State
from pipeline.sources.notes import SourceNotes
from schemas.change_event import ChangeEvent, document_key
from schemas.outcome import Outcome, OutcomeName
from schemas.record import Record

LIFTED_AT_ONCE = 100
"""Records that a truncate lifts in one transaction."""

HandOn = Callable[[Sequence[Record]], Awaitable[None]]
"""Takes records to work on, a page of those that a truncate lifts."""


class Arrived(msgspec.Struct, frozen=True):
    """A decoded event with the id under which its outcome is announced."""

    event_id: str
    event: ChangeEvent


class Reconciled(msgspec.Struct, frozen=True):
    """What became of a batch: records to work on, ended events, and refused ones."""

    advanced: list[Record]
    ended: list[Outcome]
    refused: list[tuple[Arrived, InvalidEvent]]
    again: list[Outcome] = []
    """Events that were advanced before and came once more. They may have ended since, by whoever applied the record:
    then the record says no more that their ends are to be announced."""


class Reconciler:
    """Offers events to the state store in order of arrival. Safe to run again over the same events."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._positioned: dict[tuple[str, str], bool] = {}

    async def reconcile(
        self, batch: Sequence[Arrived], reconciled: Mapping[str, int] | None = None, hand_on: HandOn | None = None
    ) -> Reconciled:
        """Advance records; the caller announces `ended` before it commits its offset.

        What a truncate lifts may be more than fits into memory: it goes to `hand_on` in pages, before this
        returns, and is in `advanced` only without it. The order says nothing: a record that was handed on
        may be there in `advanced` at an older position.

        `reconciled` (place → first offset above this batch and all before it) is noted with what the batch
        says of its sources, once the records have it: see `Sources.note_sources`.
        """
        done, notes = Reconciled([], [], []), SourceNotes()
        for run in _runs(batch):
            await self._run(run, done, notes, hand_on)
        if notes or reconciled:
            await self._state.note_sources(notes.all(), reconciled or {})
        return done

    async def _run(self, run: Sequence[Arrived], done: Reconciled, notes: SourceNotes, hand_on: HandOn | None) -> None:
        passed: list[Arrived] = []
        for arrived in run:
            if arrived.event.op == "mark":
                notes.saw(arrived.event_id, arrived.event)
                done.ended.append(_outcome(arrived.event_id, "", "", "duplicate"))
                continue
            try:
                await self._check_positioned(arrived.event)
            except InvalidEvent as error:
                done.refused.append((arrived, error))
                continue
            passed.append(arrived)
        if passed and passed[0].event.op == "truncate":
            async for page in self._truncated(passed[0]):
                if hand_on is None:
                    done.advanced.extend(page)
                else:
                    await hand_on(page)
            event = passed[0].event
            done.ended.append(_outcome(passed[0].event_id, event.document, event.position, "applied"))
            notes.saw(passed[0].event_id, passed[0].event)
            return
        offered = [_record(arrived) for arrived in passed]
        for arrived, record, result in zip(passed, offered, await self._state.advance(offered), strict=True):
            _note(record, result, done)
            notes.saw(arrived.event_id, arrived.event, result)

    async def _check_positioned(self, event: ChangeEvent) -> None:
        key = (event.source, event.collection)
        if key not in self._positioned:
            row = await self._state.collection(*key, positioned=event.positioned)
            self._positioned[key] = row.positioned
        if self._positioned[key] != event.positioned:
            has, wants = ("no position", "positions") if not event.positioned else ("a position", "none")
            raise InvalidEvent(
                "mixed_positions",
                f"{event.document}: the event has {has}, but the collection {key[0]}/{key[1]} is ordered by {wants}; "
                "a collection is positioned or not, never both: mend the publisher or the mapping's position rule",
                document=event.document,
                position=event.position,
            )

    async def _truncated(self, arrived: Arrived) -> AsyncIterator[list[Record]]:
        """Raise the floor, and lift all below it, deletes too, to a delete at the floor; yield them in pages.

        An event that arrives later but is older ends at the same delete: see `State.advance`. What is above
        it is offered the delete too: it may have taken a column from below. What was lifted before a crash
        is yielded again: it may not have been handed on.
        """
        event = arrived.event
        await self._state.set_floor(event.source, event.collection, event.position, event.version, event.occurred_at)
        lifted: list[Record] = []
        async for record in self._state.scan_records(document_key(event.source, event.collection, "")):
            lifted.append(_lifted(record, arrived))
            if len(lifted) == LIFTED_AT_ONCE:
                yield await self._lift(lifted)
                lifted = []
        if lifted:
            yield await self._lift(lifted)

    async def _lift(self, lifted: Sequence[Record]) -> list[Record]:
        results = await self._state.advance(lifted)
        return [one.record for one in results if one.result in ("advanced", "redelivered", "filled")]


def _runs(batch: Sequence[Arrived]) -> Iterator[list[Arrived]]:
    """Cut a batch around truncates: what comes after one must see its floor."""
    run: list[Arrived] = []
    for arrived in batch:
        if arrived.event.op != "truncate":
            run.append(arrived)
            continue
        if run:
            yield run
            run = []
        yield [arrived]
    if run:
        yield run


def _record(arrived: Arrived) -> Record:
    event = arrived.event
    return Record(
        document=event.document,
        op="delete" if event.op == "delete" else "upsert",
        position=event.position,
        version=event.version,
        occurred_at=event.occurred_at,
        columns=event.columns,
        unavailable=event.unavailable,
        origins=(arrived.event_id,),
        lane=event.lane,
    )


def _lifted(record: Record, arrived: Arrived) -> Record:
    event = arrived.event
    return msgspec.structs.replace(
        record,
        op="delete",
        position=event.position,
        version=event.version,
        occurred_at=event.occurred_at,
        columns={},
        origins=(arrived.event_id,),
    )


def _note(offered: Record, advance: Advance, done: Reconciled) -> None:
    event_id = offered.origins[-1]
    if advance.result == "duplicate":
        done.ended.append(_outcome(event_id, offered.document, offered.position, "duplicate"))
    elif advance.result in ("superseded", "truncated", "filled"):
        done.ended.append(_outcome(event_id, offered.document, offered.position, "superseded"))
    elif advance.result == "redelivered":
        done.again.append(_outcome(event_id, offered.document, offered.position, "applied"))
    if advance.result in ("advanced", "redelivered", "truncated", "filled"):
        done.advanced.append(advance.record)


def _outcome(event_id: str, document: str, position: str, outcome: OutcomeName) -> Outcome:
    return Outcome(event=event_id, document=document, position=position, outcome=outcome)
