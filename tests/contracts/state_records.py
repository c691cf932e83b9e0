"""What every State must do with records and collections."""

import asyncio

from pipeline.ports.state import CollectionState, State
from schemas.position import DELETE
from tests.contracts.examples import DOCUMENT, at, outcome, record


class RecordsContract:
    """Subclasses give the fixture `state`."""

    # ------------------------------------------------------------ collections

    async def test_the_first_call_fixes_whether_a_collection_is_positioned(self, state: State) -> None:
        assert await state.collection("erp", "orders", positioned=False) == CollectionState("erp", "orders", False, "")
        assert (await state.collection("erp", "orders", positioned=True)).positioned is False

    async def test_collections_are_ordered_by_source_and_name(self, state: State) -> None:
        for source, name in (("erp", "部品"), ("erp", "orders"), ("dms", "z"), ("erp", "Z")):
            await state.collection(source, name, positioned=True)
        rows = [(c.source, c.collection) for c in await state.collections()]
        assert rows == [("dms", "z"), ("erp", "Z"), ("erp", "orders"), ("erp", "部品")]

    async def test_a_floor_is_only_raised(self, state: State) -> None:
        await state.collection("erp", "equipment", positioned=True)
        await state.set_floor("erp", "equipment", at(5), "5", "2025-01-05")
        await state.set_floor("erp", "equipment", at(3), "3", "2025-01-03")
        row = await state.collection("erp", "equipment", positioned=True)
        assert row == CollectionState("erp", "equipment", True, at(5), "5", "2025-01-05")
        assert await state.collections() == [row]

    # ------------------------------------------------------------ advance

    async def test_a_new_record_advances_and_stands(self, state: State) -> None:
        offered = record(DOCUMENT, 1, "log:1", 名称="フォークリフト", 台数=3, price="1.50")
        (result,) = await state.advance([offered])
        assert (result.result, result.record) == ("advanced", offered)
        assert await state.records([DOCUMENT, "erp/equipment/none"]) == {DOCUMENT: offered}

    async def test_offering_nothing(self, state: State) -> None:
        assert await state.advance([]) == []
        assert await state.records([]) == {}

    async def test_only_a_greater_position_wins(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 5, "log:1")])
        (late,) = await state.advance([record(DOCUMENT, 4, "log:2")])
        assert (late.result, late.record.position) == ("superseded", at(5))
        (newer,) = await state.advance([record(DOCUMENT, 6, "log:3")])
        assert (newer.result, newer.record.position) == ("advanced", at(6))

    async def test_positions_compare_as_byte_strings(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 9, "log:1"), record(DOCUMENT, 10, "log:2")])
        assert (await state.records([DOCUMENT]))[DOCUMENT].version == "10"

    async def test_records_are_offered_in_order(self, state: State) -> None:
        results = await state.advance([record(DOCUMENT, n, f"log:{n}") for n in (2, 1, 3, 3)])
        assert [r.result for r in results] == ["advanced", "superseded", "advanced", "redelivered"]

    async def test_a_winner_takes_over_the_origins_not_announced(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1")])
        (result,) = await state.advance([record(DOCUMENT, 2, "log:2")])
        assert result.record.origins == ("log:1", "log:2")

    async def test_the_same_position_from_another_event_is_a_duplicate(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1", a=1)])
        (result,) = await state.advance([record(DOCUMENT, 1, "log:2", a=2)])
        assert (result.result, result.record.columns) == ("duplicate", {"a": 1})
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ("log:1",)

    async def test_the_winner_again_is_redelivered_before_its_outcome(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1")])
        assert [r.result for r in await state.advance([record(DOCUMENT, 1, "log:1")])] == ["redelivered"]

    async def test_the_winner_again_is_redelivered_after_it_was_applied(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1")])
        await state.announce([outcome("log:1", "applied")])
        results = await state.advance([record(DOCUMENT, 1, "log:1"), record(DOCUMENT, 1, "log:2")])
        assert [r.result for r in results] == ["redelivered", "duplicate"]
        assert (await state.records([DOCUMENT]))[DOCUMENT].origins == ()

    async def test_an_event_folded_into_a_newer_one_is_redelivered(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1"), record(DOCUMENT, 2, "log:2")])
        (result,) = await state.advance([record(DOCUMENT, 1, "log:1")])
        assert (result.result, result.record.version) == ("redelivered", "2")

    async def test_a_delete_wins_over_an_upsert_of_the_same_ordinal(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1", op="delete", a=1)])
        (late,) = await state.advance([record(DOCUMENT, 1, "log:2")])
        assert late.result == "superseded"
        standing = (await state.records([DOCUMENT]))[DOCUMENT]
        assert (standing.op, standing.position) == ("delete", at(1, rank=DELETE))

    # ------------------------------------------------------------ floors

    async def test_below_the_floor_a_delete_at_the_floor_stands(self, state: State) -> None:
        await state.collection("erp", "equipment", positioned=True)
        await state.set_floor("erp", "equipment", at(5), "5", "2025-01-05")
        low, equal, other = await state.advance(
            [
                record(DOCUMENT, 4, "log:1", a=1),
                record("erp/equipment/B", 5, "log:2"),
                record("erp/other/C", 1, "log:3"),
            ]
        )
        assert (low.result, equal.result, other.result) == ("truncated", "advanced", "advanced")
        standing = (await state.records([DOCUMENT]))[DOCUMENT]
        assert low.record == standing
        assert (standing.op, standing.position, standing.version) == ("delete", at(5), "5")
        assert (standing.columns, standing.occurred_at, standing.origins) == ({}, "2025-01-05", ())

    async def test_below_the_floor_a_newer_record_goes_on_standing(self, state: State) -> None:
        await state.collection("erp", "equipment", positioned=True)
        await state.advance([record(DOCUMENT, 9, "log:1")])
        await state.set_floor("erp", "equipment", at(5), "5", "2025-01-05")
        (late,) = await state.advance([record(DOCUMENT, 4, "log:2")])
        assert (late.result, late.record.version) == ("superseded", "9")

    async def test_below_the_floor_again_changes_nothing(self, state: State) -> None:
        await state.collection("erp", "equipment", positioned=True)
        await state.set_floor("erp", "equipment", at(5), "5", "2025-01-05")
        results = [r for _ in range(2) for r in await state.advance([record(DOCUMENT, 4, "log:1")])]
        assert [r.result for r in results] == ["truncated", "truncated"]
        assert results[0].record == results[1].record

    # ------------------------------------------------------------ reading

    async def test_scans_in_byte_order_of_the_key(self, state: State) -> None:
        keys = [f"erp/a/{key}" for key in ("ア", "a", "Z", "亜", "𠮷", "﨑", "ｱ", "1-1", "1-12")] + ["erp/b/1"]
        await state.advance([record(key, 1, op="delete" if key.endswith("Z") else "upsert") for key in keys])
        scanned = [r.document async for r in state.scan_records()]
        assert scanned == sorted(keys, key=lambda key: key.encode())

    async def test_scans_below_a_prefix(self, state: State) -> None:
        keys = ["erp/機器/1", "erp/機器/2", "erp/機器台帳/1", "erp/機/1", "dms/機器/1", "erp/機器%/1"]
        await state.advance([record(key) for key in keys])
        assert [r.document async for r in state.scan_records("erp/機器/")] == ["erp/機器/1", "erp/機器/2"]

    async def test_scans_more_than_a_page(self, state: State) -> None:
        await state.advance([record(f"erp/a/{n:04d}") for n in range(1_203)])
        assert len([r async for r in state.scan_records()]) == 1_203
        assert len(await state.records([f"erp/a/{n:04d}" for n in range(1_300)])) == 1_203

    # ------------------------------------------------------------ concurrency

    async def test_one_of_two_callers_wins_a_position(self, state: State) -> None:
        for n in range(10):
            first, second = await asyncio.gather(
                state.advance([record(f"erp/a/{n}", 1, "log:1")]), state.advance([record(f"erp/a/{n}", 1, "log:2")])
            )
            assert sorted([first[0].result, second[0].result]) == ["advanced", "duplicate"]

    async def test_callers_at_once_leave_the_greatest_position_and_every_origin(self, state: State) -> None:
        keys = [f"erp/a/{n}" for n in range(5)]
        batches = [[record(key, n, f"{key}:{n}") for key in (keys if n % 2 else keys[::-1])] for n in range(1, 13)]
        results = await asyncio.gather(*(state.advance(batch) for batch in batches))
        superseded = {
            offered.origins[0]
            for batch, answers in zip(batches, results, strict=True)
            for offered, answer in zip(batch, answers, strict=True)
            if answer.result == "superseded"
        }
        for key, standing in (await state.records(keys)).items():
            assert standing.version == "12"
            assert standing.origins[-1] == f"{key}:12"
            lost = {origin for origin in superseded if origin.startswith(f"{key}:")}
            assert set(standing.origins) | lost == {f"{key}:{n}" for n in range(1, 13)}
            assert not set(standing.origins) & lost
