"""What every ChangeLog must do."""

import asyncio

import pytest

from pipeline.ports.change_log import ChangeLog
from schemas.change_event import RawEvent

NOW = "2025-07-08T00:00:00.000000Z"


def raws(*values: str) -> list[RawEvent]:
    return [RawEvent(value=value.encode()) for value in values]


class ChangeLogContract:
    """Subclasses give the fixtures."""

    async def test_offsets_start_at_one_and_grow_by_arrival(self, log: ChangeLog) -> None:
        assert await log.append(raws("a", "b"), NOW) == [1, 2]
        assert await log.append(raws("c"), NOW) == [3]
        assert await log.end() == 3

    async def test_an_empty_log_ends_at_zero(self, log: ChangeLog) -> None:
        assert await log.end() == 0
        assert await log.read(0, 10) == []

    async def test_appending_nothing(self, log: ChangeLog) -> None:
        assert await log.append([], NOW) == []
        assert await log.end() == 0

    async def test_reads_behind_an_offset_in_order_up_to_the_limit(self, log: ChangeLog) -> None:
        await log.append(raws("a", "b", "c", "d"), NOW)
        assert [(e.offset, e.raw.value) for e in await log.read(1, 2)] == [(2, b"b"), (3, b"c")]
        assert await log.read(4, 10) == []
        assert await log.read(99, 10) == []

    async def test_keeps_events_whole(self, log: ChangeLog) -> None:
        events = [
            RawEvent(value=None, key="鍵".encode(), headers={"ce_type": "削除"}, topic="erp", lane="bulk"),
            RawEvent(value=b"\x00\xff", key=None),
            RawEvent(value=b"", key=b""),
        ]
        await log.append(events, NOW)
        read = await log.read(0, 10)
        assert [e.raw for e in read] == events
        assert {e.received_at for e in read} == {NOW}

    async def test_appends_all_or_none(self, log: ChangeLog) -> None:
        await log.append(raws("a"), NOW)
        bad = RawEvent(value=b"c", headers={"x": "\ud800"})  # a lone surrogate cannot be written
        with pytest.raises(ValueError, match="surrogate"):
            await log.append([*raws("b"), bad], NOW)
        assert [e.raw.value for e in await log.read(0, 10)] == [b"a"]
        assert await log.append(raws("d"), NOW) == [2]

    async def test_two_callers_at_once(self, log: ChangeLog) -> None:
        offsets = await asyncio.gather(*(log.append(raws(f"{n}a", f"{n}b"), NOW) for n in range(20)))
        assert sorted(o for pair in offsets for o in pair) == list(range(1, 41))
        read = {e.offset: e.raw.value for e in await log.read(0, 100)}
        for n, (first, second) in enumerate(offsets):
            assert second == first + 1
            assert (read[first], read[second]) == (f"{n}a".encode(), f"{n}b".encode())
