"""Reconcile: only events that advance the position of their key pass; everything else ends here, counted."""

from collections.abc import Iterator, Sequence

import msgspec

from pipeline.errors import InvalidEvent
from pipeline.ports.state import Advance, State
from schemas.change_event import ChangeEvent, document_key
from schemas.outcome import Outcome, OutcomeName
from schemas.record import Record


class Arrived(msgspec.Struct, frozen=True):
    """A decoded event with the id under which its outcome is announced."""

    event_id: str
    event: ChangeEvent


class Reconciled(msgspec.Struct, frozen=True):
    """What became of a batch: records to work on, ended events, and refused ones."""

    advanced: list[Record]
    ended: list[Outcome]
    refused: list[tuple[Arrived, InvalidEvent]]


class Reconciler:
    """Offers events to the state store in order of arrival. Safe to run again over the same events."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._positioned: dict[tuple[str, str], bool] = {}

    async def reconcile(self, batch: Sequence[Arrived]) -> Reconciled:
        """Advance records; the caller announces `ended` before it commits its offset."""
        done = Reconciled([], [], [])
        for run in _runs(batch):
            await self._run(run, done)
        return done

    async def _run(self, run: Sequence[Arrived], done: Reconciled) -> None:
        passed: list[Arrived] = []
        for arrived in run:
            try:
                await self._check_positioned(arrived.event)
            except InvalidEvent as error:
                done.refused.append((arrived, error))
                continue
            passed.append(arrived)
        if passed and passed[0].event.op == "truncate":
            await self._truncate(passed[0], done)
            return
        offered = await self._filled(passed)
        for record, result in zip(offered, await self._state.advance(offered), strict=True):
            _note(record, result, done)

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

    async def _filled(self, run: Sequence[Arrived]) -> list[Record]:
        """Make records; columns that the source did not send come from the record before."""
        asked = [a.event.document for a in run if a.event.unavailable]
        before = await self._state.records(asked) if asked else {}
        return [_record(a, before.get(a.event.document)) for a in run]

    async def _truncate(self, arrived: Arrived, done: Reconciled) -> None:
        """Raise the floor, and lift all below it, deletes too, to a delete at the floor.

        An event that arrives later but is older ends at the same delete: see `State.advance`.
        """
        event = arrived.event
        await self._state.set_floor(event.source, event.collection, event.position, event.version, event.occurred_at)
        prefix = document_key(event.source, event.collection, "")
        below = [r async for r in self._state.scan_records(prefix) if r.position < event.position]
        for result in await self._state.advance([_lifted(record, arrived) for record in below]):
            if result.result == "advanced":
                done.advanced.append(result.record)
        done.ended.append(_outcome(arrived.event_id, event.document, event.position, "applied"))


def _runs(batch: Sequence[Arrived]) -> Iterator[list[Arrived]]:
    """Cut a batch where one event must see the effect of an earlier one: truncates, and filled columns."""
    run: list[Arrived] = []
    seen: set[str] = set()
    for arrived in batch:
        event = arrived.event
        alone = event.op == "truncate"
        if run and (alone or (event.unavailable and event.document in seen)):
            yield run
            run, seen = [], set()
        run.append(arrived)
        seen.add(event.document)
        if alone:
            yield run
            run, seen = [], set()
    if run:
        yield run


def _record(arrived: Arrived, before: Record | None) -> Record:
    event = arrived.event
    columns = dict(event.columns)
    if before is not None:
        columns.update({name: before.columns[name] for name in event.unavailable if name in before.columns})
    return Record(
        document=event.document,
        op="delete" if event.op == "delete" else "upsert",
        position=event.position,
        version=event.version,
        occurred_at=event.occurred_at,
        columns=columns,
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
    elif advance.result in ("superseded", "truncated"):
        done.ended.append(_outcome(event_id, offered.document, offered.position, "superseded"))
    if advance.result in ("advanced", "redelivered", "truncated"):
        done.advanced.append(advance.record)


def _outcome(event_id: str, document: str, position: str, outcome: OutcomeName) -> Outcome:
    return Outcome(event=event_id, document=document, position=position, outcome=outcome)
