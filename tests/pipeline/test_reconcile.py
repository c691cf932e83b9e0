"""Reconcile: positions decide, not arrival."""

from collections.abc import Sequence
from typing import Any

import pytest

from pipeline import reconcile
from pipeline.ports.state import State
from pipeline.reconcile import Arrived, Reconciled, Reconciler
from schemas.change_event import ChangeEvent, Op
from schemas.record import Record
from tests.contracts.examples import at, outcome

KEY = "erp/equipment/F-17"


def arrived(number: int, ordinal: int, op: Op = "upsert", key: str = "F-17", **more: Any) -> Arrived:
    event = ChangeEvent(
        source="erp",
        collection="equipment",
        key="" if op == "truncate" else key,
        op=op,
        position=at(ordinal),
        version=str(ordinal),
        occurred_at=f"2025-01-{ordinal:02d}",
        **more,
    )
    return Arrived(f"log:{number}", event)


def ends(done: Reconciled) -> dict[str, str]:
    return {o.event: o.outcome for o in done.ended}


async def test_a_newer_event_advances_and_an_older_one_is_superseded(state: State) -> None:
    done = await Reconciler(state).reconcile([arrived(1, 5, columns={"a": 1}), arrived(2, 4), arrived(3, 6)])
    assert [(r.document, r.version) for r in done.advanced] == [(KEY, "5"), (KEY, "6")]
    assert ends(done) == {"log:2": "superseded"}


async def test_the_same_version_twice_is_a_duplicate(state: State) -> None:
    assert ends(await Reconciler(state).reconcile([arrived(1, 5), arrived(2, 5)])) == {"log:2": "duplicate"}


async def test_a_batch_again_ends_the_same_way(state: State) -> None:
    """As after a crash before the offset was committed."""
    batch = [arrived(1, 5), arrived(2, 4), arrived(3, 5), arrived(4, 6)]
    first = await Reconciler(state).reconcile(batch)
    await state.announce(first.ended)
    again = await Reconciler(state).reconcile(batch)
    await state.announce(again.ended)
    assert await state.outcomes(["log:1", "log:2", "log:3", "log:4"]) == ends(first)
    assert ends(first) == {"log:2": "superseded", "log:3": "duplicate"}
    assert {r.version for r in again.advanced} == {"6"}
    assert (await state.records([KEY]))[KEY].origins == ("log:1", "log:4")


async def test_an_event_that_advanced_before_and_has_ended_since_is_told(state: State) -> None:
    """The record names it no more, so nobody behind this stage would announce its end."""
    await Reconciler(state).reconcile([arrived(1, 5)])
    await state.announce([outcome("log:1", "applied", KEY, 5)])
    again = await Reconciler(state).reconcile([arrived(1, 5)])
    assert [one.event for one in again.again] == ["log:1"]
    assert [record.origins for record in again.advanced] == [()]


async def test_a_batch_again_after_it_was_applied_changes_no_outcome(state: State) -> None:
    await Reconciler(state).reconcile([arrived(1, 5)])
    await state.announce([outcome("log:1", "applied", KEY, 5)])
    again = await Reconciler(state).reconcile([arrived(1, 5)])
    assert again.ended == []
    assert (await state.records([KEY]))[KEY].origins == ()


async def test_columns_not_sent_come_from_the_record_before(state: State) -> None:
    reconciler = Reconciler(state)
    await reconciler.reconcile([arrived(1, 1, columns={"a": 1, "b": 2})])
    done = await reconciler.reconcile([arrived(2, 2, columns={"a": 3}, unavailable=("b", "c"))])
    assert done.advanced[0].columns == {"a": 3, "b": 2}


async def test_columns_not_sent_see_an_earlier_event_of_their_batch(state: State) -> None:
    done = await Reconciler(state).reconcile(
        [
            arrived(1, 1, columns={"a": 1}),
            arrived(2, 2, columns={"b": 2}, unavailable=("a",)),
            arrived(3, 3, columns={}, unavailable=("a", "b")),
        ]
    )
    assert done.advanced[-1].columns == {"a": 1, "b": 2}


async def test_a_collection_is_positioned_or_not(state: State) -> None:
    reconciler = Reconciler(state)
    await reconciler.reconcile([arrived(1, 1)])
    done = await reconciler.reconcile([arrived(2, 2, positioned=False), arrived(3, 3)])
    assert [(a.event_id, error.code) for a, error in done.refused] == [("log:2", "mixed_positions")]
    assert [r.version for r in done.advanced] == ["3"]
    assert [a.event_id for a, _ in (await Reconciler(state).reconcile([arrived(4, 4, positioned=False)])).refused]


async def test_a_truncate_deletes_all_below_it(state: State) -> None:
    done = await Reconciler(state).reconcile(
        [arrived(1, 1, key="A"), arrived(2, 9, key="B"), arrived(3, 2, "delete", key="C"), arrived(4, 5, "truncate")]
    )
    stands = {r.document[-1]: (r.op, r.version, r.occurred_at) async for r in state.scan_records()}
    assert stands == {
        "A": ("delete", "5", "2025-01-05"),
        "B": ("upsert", "9", "2025-01-09"),
        "C": ("delete", "5", "2025-01-05"),
    }
    assert ends(done) == {"log:4": "applied"}


async def test_the_origins_of_a_truncated_record_are_superseded_not_applied(state: State) -> None:
    await Reconciler(state).reconcile([arrived(1, 1), arrived(2, 5, "truncate")])
    assert (await state.records([KEY]))[KEY].origins == ("log:1", "log:2")


async def test_an_event_below_a_truncate_ends_as_if_it_had_come_before_it(state: State) -> None:
    reconciler = Reconciler(state)
    done = await reconciler.reconcile([arrived(1, 5, "truncate"), arrived(2, 1, columns={"a": 1})])
    assert ends(done) == {"log:1": "applied", "log:2": "superseded"}
    assert [(r.op, r.version, r.occurred_at) for r in done.advanced] == [("delete", "5", "2025-01-05")]
    newer = await reconciler.reconcile([arrived(3, 6)])
    assert [r.version for r in newer.advanced] == ["6"]


async def test_truncates_in_any_order_leave_the_newest_floor(state: State) -> None:
    done = await Reconciler(state).reconcile([arrived(1, 9, "truncate"), arrived(2, 1), arrived(3, 5, "truncate")])
    (row,) = await state.collections()
    assert row.floor == at(9)
    assert [r.version async for r in state.scan_records()] == ["9"]
    assert ends(done) == {"log:1": "applied", "log:2": "superseded", "log:3": "applied"}


async def test_a_truncate_again_changes_nothing(state: State) -> None:
    batch = [arrived(1, 1), arrived(2, 5, "truncate")]
    await Reconciler(state).reconcile(batch)
    before = [r async for r in state.scan_records()]
    done = await Reconciler(state).reconcile(batch)
    assert [r async for r in state.scan_records()] == before
    assert ends(done)["log:2"] == "applied"


async def test_what_a_truncate_lifted_is_handed_on_again_when_it_comes_again(state: State) -> None:
    """After a crash before it was sent, announced or not."""
    truncate = arrived(9, 5, "truncate")
    await Reconciler(state).reconcile([arrived(1, 1, key="a"), arrived(2, 2, key="b"), arrived(3, 7, key="c")])
    first = await Reconciler(state).reconcile([truncate])
    assert [(r.document[-1], r.op) for r in first.advanced] == [("a", "delete"), ("b", "delete")]
    assert (await Reconciler(state).reconcile([truncate])).advanced == first.advanced
    await state.announce(first.ended)
    again = await Reconciler(state).reconcile([truncate])
    assert [(r.document, r.position) for r in again.advanced] == [(r.document, r.position) for r in first.advanced]


async def test_what_a_truncate_lifts_is_handed_on_in_pages(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "LIFTED_AT_ONCE", 2)
    keys = ["a", "b", "c", "d", "e"]
    await Reconciler(state).reconcile([arrived(n, 1, key=key) for n, key in enumerate(keys)])
    pages: list[list[str]] = []

    async def hand_on(page: Sequence[Record]) -> None:
        assert {r.op for r in page} == {"delete"}
        pages.append([r.document[-1] for r in page])

    done = await Reconciler(state).reconcile([arrived(9, 5, "truncate"), arrived(10, 6)], None, hand_on)
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    assert [r.document for r in done.advanced] == [KEY]
    assert ends(done) == {"log:9": "applied"}


async def test_a_truncate_leaves_other_collections_alone(state: State) -> None:
    other = arrived(1, 1)
    elsewhere = Arrived("log:1", ChangeEvent(**{**_fields(other.event), "collection": "equipment2"}))
    await Reconciler(state).reconcile([elsewhere, arrived(2, 5, "truncate")])
    assert [r.op async for r in state.scan_records()] == ["upsert"]


def _fields(event: ChangeEvent) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__struct_fields__}
