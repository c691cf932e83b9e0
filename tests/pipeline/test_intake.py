"""Intake: what is accepted is logged, what is refused is kept, and the log is read to its end whatever happens."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.backends.log_sqlite import SqliteChangeLog
from pipeline.backends.sqlite import Database
from pipeline.embedded.intake import CONSUMER, Intake
from pipeline.errors import BackendUnavailable, Backpressure
from pipeline.mapping import Mappings
from pipeline.ports.state import State
from schemas.change_event import RawEvent
from schemas.record import Record

NOW = "2025-07-08T00:00:00.000000Z"


def event(key: str = "1", position: int | None = 1, **more: Any) -> RawEvent:
    body = {"source": "dms", "collection": "notes", "key": key, "position": position, "occurred_at": NOW}
    record = {"title": f"題{key}", "body": "本文"}
    return RawEvent(value=json.dumps(body | {"record": record} | more).encode())


class Scheduled:
    """Remembers what intake handed on."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failures = 0

    async def __call__(self, records: Sequence[Record], arrived: str) -> None:
        if self.failures:
            self.failures -= 1
            raise BackendUnavailable("the state store is away")
        self.records += records


@pytest.fixture
def scheduled() -> Scheduled:
    return Scheduled()


def make(database: Database, state: State, scheduled: Scheduled, **more: Any) -> Intake:
    limits = {"max_event": 2_000, "max_backlog": 50} | more
    return Intake(
        SqliteChangeLog(database),
        state,
        Mappings(),
        clock=lambda: NOW,
        advanced=scheduled,
        progressed=lambda: None,
        **limits,
    )


@pytest.fixture
async def intake(database: Database, state: State, scheduled: Scheduled) -> Intake:
    intake = make(database, state, scheduled)
    await intake.open()
    return intake


async def test_accepted_events_have_an_id_and_a_token(intake: Intake) -> None:
    first, second = await intake.submit([event("1"), event("2")])
    assert (first.status, first.event, first.document) == ("accepted", "log:1", "dms/notes/1")
    assert [part.document for part in second.parts] == ["dms/notes/2"]
    assert (intake.end, intake.reconciled, intake.behind_since) == (2, 0, NOW)


async def test_the_good_ones_of_a_batch_are_kept(intake: Intake, state: State) -> None:
    results = await intake.submit([event("1"), RawEvent(value=b"{"), event("2"), RawEvent(value=None)])
    assert [r.status for r in results] == ["accepted", "rejected", "accepted", "rejected"]
    assert [r.index for r in results] == [0, 1, 2, 3]
    assert intake.end == 2
    letter = await state.dead_letter(results[1].dead_letter)
    assert letter is not None
    assert (letter.code, letter.payload, letter.stage) == ("not_json", b"{", "decode")


async def test_the_same_refused_bytes_are_one_letter(intake: Intake, state: State) -> None:
    for _ in range(2):
        await intake.submit([RawEvent(value=b"{")])
    (letter,) = await state.dead_letters()
    assert letter.attempts == 2
    assert (await state.counts("g1"))["outcome.dead_letter"] == 1


async def test_refused_events_that_differ_in_their_headers_are_two(intake: Intake, state: State) -> None:
    """CloudEvents in binary mode say everything in their headers."""
    headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_type": "x.unknown", "ce_source": "/dms/notes"}
    for subject in ("a", "b"):
        await intake.submit([RawEvent(value=b"{}", headers=headers | {"ce_subject": subject})])
    assert len(await state.dead_letters()) == 2


async def test_too_large_is_told_apart(intake: Intake) -> None:
    (result,) = await intake.submit([event(record={"title": "x", "body": "x" * 3_000})])
    assert (result.status, result.code, result.too_large) == ("rejected", "too_large", True)


async def test_a_full_backlog_takes_nothing(intake: Intake) -> None:
    await intake.submit([event(str(n)) for n in range(50)])
    with pytest.raises(Backpressure) as pressure:
        await intake.submit([event("x")])
    assert pressure.value.retry_after > 0
    assert intake.end == 50
    while await intake.step():
        pass
    await intake.submit([event("x")])


async def test_a_batch_larger_than_the_backlog_is_taken_when_nothing_waits(intake: Intake) -> None:
    assert len(await intake.submit([event(str(n)) for n in range(60)])) == 60
    with pytest.raises(Backpressure):
        await intake.submit([event("x")])


async def test_steps_read_to_the_end(intake: Intake, scheduled: Scheduled) -> None:
    await intake.submit([event("1"), event("2"), event("1", 2)])
    assert await intake.step()
    assert intake.reconciled == 3
    assert [r.document for r in scheduled.records] == ["dms/notes/1", "dms/notes/2", "dms/notes/1"]
    assert not await intake.step()
    assert intake.behind_since == ""


async def test_tombstones_end_as_duplicates(intake: Intake, state: State) -> None:
    (result,) = await intake.submit([RawEvent(value=None, key=b'{"id": 1}')])
    await intake.step()
    assert (result.status, result.parts) == ("accepted", ())
    assert await state.outcomes([result.event]) == {result.event: "duplicate"}


async def test_a_restart_goes_on_where_it_stopped(
    intake: Intake, database: Database, state: State, scheduled: Scheduled
) -> None:
    await intake.submit([event("1")])
    await intake.step()
    await intake.submit([event("2")])
    again = make(database, state, scheduled)
    await again.open()
    assert (again.end, again.reconciled, again.behind_since) == (2, 1, NOW)
    await again.step()
    assert [r.document for r in scheduled.records] == ["dms/notes/1", "dms/notes/2"]
    assert await state.offset(CONSUMER) == 2


async def test_a_batch_that_could_not_be_scheduled_is_read_again(
    intake: Intake, state: State, scheduled: Scheduled
) -> None:
    scheduled.failures = 1
    await intake.submit([event("1")])
    with pytest.raises(BackendUnavailable):
        await intake.step()
    assert intake.reconciled == 0
    await intake.step()
    assert [r.document for r in scheduled.records] == ["dms/notes/1"]
    assert (await state.records(["dms/notes/1"]))["dms/notes/1"].origins == ("log:1",)


async def test_a_collection_of_both_kinds_is_refused_and_kept(intake: Intake, state: State) -> None:
    await intake.submit([event("1"), event("2", position=None)])
    await intake.step()
    (letter,) = await state.dead_letters()
    assert (letter.code, letter.stage, letter.document, letter.event) == (
        "mixed_positions", "reconcile", "dms/notes/2", "log:2",
    )  # fmt: skip
    assert await state.outcomes(["log:1", "log:2"]) == {"log:2": "dead_letter"}


async def test_it_waits_for_a_store_that_is_down_and_drops_nothing(
    intake: Intake, scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.embedded.intake.FIRST_PAUSE", 0.01)
    scheduled.failures = 2
    reader = asyncio.create_task(intake.run())
    await intake.submit([event("1")])
    for _ in range(200):
        if intake.reconciled:
            break
        await asyncio.sleep(0.01)
    reader.cancel()
    assert [r.document for r in scheduled.records] == ["dms/notes/1"]
    assert intake.failure == ""


async def test_a_bug_in_decoding_is_a_refused_event(intake: Intake, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(raw: RawEvent, mappings: Mappings) -> list[Any]:
        raise RecursionError("too deep")

    monkeypatch.setattr("pipeline.decoding.admission.decode", broken)
    (result,) = await intake.submit([event("1")])
    assert (result.status, result.code) == ("rejected", "internal_error")
