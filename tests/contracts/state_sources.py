"""What every State must do with sources, and with columns that an event did not bring."""

import asyncio

import msgspec

from pipeline.ports.sources import RECENT, EpochStart, SourceHead, SourceNote
from pipeline.ports.state import State
from schemas.position import as_sent, reached
from tests.contracts.examples import DOCUMENT, at, record

DAY = "2025-07-08T00:00:00.000000Z"


def note(ordinal: int, *, source: str = "erp", place: str = "erp.t-0", day: int = 1, **more: object) -> SourceNote:
    plain = SourceNote(
        source=source, place=place, head=reached(0, ordinal), version=str(ordinal), at=f"2025-01-{day:02d}"
    )
    return msgspec.structs.replace(plain, **more)


class SourcesContract:
    """Subclasses give the fixture `state`."""

    # ------------------------------------------------------------ epochs

    async def test_epochs_count_from_one_for_each_source(self, state: State) -> None:
        assert await state.epochs() == []
        assert await state.new_epoch("erp", {"erp.t-0": 17}, DAY) == 1
        assert await state.new_epoch("erp", {"erp.t-0": 20, "erp.t-1": 3}, DAY) == 2
        assert await state.new_epoch("crm", {}, DAY) == 1
        assert await state.epochs() == [
            EpochStart(source="crm", epoch=1, starts={}, at=DAY),
            EpochStart(source="erp", epoch=1, starts={"erp.t-0": 17}, at=DAY),
            EpochStart(source="erp", epoch=2, starts={"erp.t-0": 20, "erp.t-1": 3}, at=DAY),
        ]

    async def test_a_new_epoch_forgets_what_was_said_of_the_old_one(self, state: State) -> None:
        await state.note_sources([note(5, recent="xxx"), note(5, source="crm", recent="x")], {})
        await state.new_epoch("erp", {}, DAY)
        assert {head.source: (head.head, head.recent) for head in await state.source_heads()} == {
            "crm": (reached(0, 5), "x"),
            "erp": (reached(0, 5), ""),
        }

    # ------------------------------------------------------------ heads

    async def test_heads_are_only_raised(self, state: State) -> None:
        await state.note_sources([note(5, day=5)], {})
        await state.note_sources([note(3, day=3)], {})
        expected = SourceHead(
            source="erp", place="erp.t-0", head=reached(0, 5), version="5", at="2025-01-05", recent=""
        )
        assert await state.source_heads() == [expected]
        await state.note_sources([note(7, day=7, place="erp.t-1"), note(9, source="crm")], {})
        assert [(h.place, h.version) for h in await state.source_heads("erp")] == [("erp.t-0", "5"), ("erp.t-1", "7")]

    async def test_recent_events_are_kept_in_order(self, state: State) -> None:
        await state.note_sources([note(1, recent="." * RECENT)], {})
        await state.note_sources([note(2, recent="xx.")], {})
        (head,) = await state.source_heads()
        assert head.recent == "." * (RECENT - 3) + "xx."

    async def test_a_mark_that_is_lower_and_later_counts(self, state: State) -> None:
        await state.note_sources([note(5, day=5, mark=(reached(0, 5), "2025-01-05"))], {})
        await state.note_sources([note(3, day=6, mark=(reached(0, 3), "2025-01-06"))], {})
        await state.note_sources([note(4, day=4, mark=(reached(0, 4), "2025-01-04"))], {})
        (head,) = await state.source_heads()
        assert (head.recent, head.version) == (".x.", "5")

    async def test_reconciled_offsets_are_only_raised(self, state: State) -> None:
        await state.note_sources([], {"erp.t-0": 5, "erp.t-1": 2})
        await state.note_sources([], {"erp.t-0": 3})
        assert await state.reconciled(["erp.t-0", "erp.t-1", "erp.t-2"]) == {"erp.t-0": 5, "erp.t-1": 2}

    async def test_many_note_at_once(self, state: State) -> None:
        for table, numbers in (("t", range(1, 13)), ("u", range(12, 0, -1))):  # the first ones meet no row
            places = [f"erp.{table}-{n}" for n in range(4)]
            await asyncio.gather(
                *(
                    state.note_sources(
                        [note(n, place=place) for place in (places if n % 2 else places[::-1])],
                        dict.fromkeys(places, n),
                    )
                    for n in numbers
                )
            )
            assert {head.version for head in await state.source_heads()} == {"12"}
            assert set((await state.reconciled(places)).values()) == {12}

    # ------------------------------------------------------------ columns not sent

    async def test_columns_not_sent_are_those_of_the_row_before(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1", a=1, b=1)])
        newer = msgspec.structs.replace(record(DOCUMENT, 2, "log:2", b=2), unavailable=("a", "c"))
        (result,) = await state.advance([newer])
        assert (result.result, result.record.columns, result.record.unavailable) == ("advanced", {"a": 1, "b": 2}, ())
        assert (await state.records([DOCUMENT]))[DOCUMENT] == result.record

    async def test_a_late_version_fills_what_stands(self, state: State) -> None:
        await state.advance([msgspec.structs.replace(record(DOCUMENT, 5, "log:1", b=5), unavailable=("a",))])
        (late,) = await state.advance([record(DOCUMENT, 3, "log:2", a=3, b=3)])
        assert (late.result, late.record.columns) == ("filled", {"a": 3, "b": 5})
        assert late.record.position > at(5)
        assert as_sent(late.record.position) == at(5)
        older, again, newer = await state.advance(
            [
                record(DOCUMENT, 2, "log:3", a=2),
                record(DOCUMENT, 3, "log:2", a=3, b=3),
                record(DOCUMENT, 4, "log:4", a=4),
            ]
        )
        assert (older.result, older.record) == ("superseded", late.record)
        assert (again.result, again.record) == ("filled", late.record), "as after a crash"
        assert (newer.result, newer.record.columns["a"]) == ("filled", 4)
        assert (await state.records([DOCUMENT]))[DOCUMENT] == newer.record

    async def test_a_delete_in_between_leaves_nothing_to_fill(self, state: State) -> None:
        await state.advance([record(DOCUMENT, 1, "log:1", a=1)])
        await state.advance([msgspec.structs.replace(record(DOCUMENT, 5, "log:2", b=5), unavailable=("a",))])
        (late,) = await state.advance([record(DOCUMENT, 3, "log:3", op="delete")])
        assert (late.result, late.record.columns, late.record.op) == ("filled", {"b": 5}, "upsert")

    async def test_the_same_event_is_a_duplicate_after_a_fill_too(self, state: State) -> None:
        await state.advance([msgspec.structs.replace(record(DOCUMENT, 5, "log:1", b=5), unavailable=("a",))])
        await state.advance([record(DOCUMENT, 3, "log:2", a=3)])
        (again,) = await state.advance([record(DOCUMENT, 5, "log:9", b=5)])
        assert again.result == "duplicate"
