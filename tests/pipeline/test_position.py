"""Positions: sort keys order as positions do."""

import pytest

from schemas.position import DELETE, SNAPSHOT, UPSERT, Position, as_sent, next_filling, parse_sort_key, reached

TIE = "0123456789abcdef"
IN_ORDER = [
    Position(0, 5, SNAPSHOT, TIE, within=3),
    Position(0, 5, UPSERT, TIE, within=3),
    Position(0, 5, DELETE, TIE, within=3),
    Position(0, 5, UPSERT, TIE, within=4),
    Position(0, 5, SNAPSHOT, TIE),
    Position(0, 5, UPSERT, TIE),
    Position(0, 5, UPSERT, TIE, filling=1),
    Position(0, 5, UPSERT, TIE, filling=2),
    Position(0, 5, UPSERT, "f" * 16),
    Position(0, 5, DELETE, TIE),
    Position(0, 10, SNAPSHOT, TIE, within=9),
    Position(0, 10**20 - 1, DELETE, TIE),
    Position(1, 0, DELETE, TIE),
]


def test_sort_keys_order_as_positions_do() -> None:
    keys = [position.sort_key() for position in IN_ORDER]
    assert keys == sorted(keys, key=str.encode)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("position", IN_ORDER)
def test_sort_keys_are_read_back(position: Position) -> None:
    key = position.sort_key()
    assert parse_sort_key(key) == position
    assert key.startswith(reached(position.epoch, position.ordinal))


@pytest.mark.parametrize("text", ["", "a.b.c.d", "1.2.3", "000000.5-x.5.0"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_sort_key(text)


def test_a_filling_is_newer_than_its_version_and_older_than_the_next() -> None:
    key = Position(0, 5, UPSERT, TIE).sort_key()
    once = next_filling(key)
    assert key < once < next_filling(once) < Position(0, 5, UPSERT, "1" * 16).sort_key()
    assert as_sent(next_filling(once)) == as_sent(once) == as_sent(key) == key
    assert as_sent("") == ""
