"""Columns that the source did not send (TOAST): in any order of arrival the same record stands in the end."""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pipeline.backends.state_sqlite import open_state_database, sqlite_state
from pipeline.ports.state import State
from pipeline.reconcile import Arrived, Reconciler
from schemas.change_event import ChangeEvent
from schemas.position import DELETE, UPSERT, Position, as_sent
from tests.differential.running import scratch

KEY = "erp/equipment/F-17"
NOT_SENT = "not sent"
LONG, SHORT = {"a": "長文", "b": 1}, {"a": NOT_SENT, "b": 2}
Row = dict[str, Any] | str
"""Columns, or what else happened to the row."""

values = st.sampled_from(("x", "y", NOT_SENT))
rows = st.one_of(
    st.fixed_dictionaries({"b": values}, optional={"a": values}),
    st.fixed_dictionaries({"a": values, "b": values}),
    st.sampled_from(("delete", "truncate")),
)


def arrived(number: int, row: Row) -> Arrived:
    op = row if isinstance(row, str) else "upsert"
    columns = {} if isinstance(row, str) else {name: value for name, value in row.items() if value != NOT_SENT}
    unavailable = () if isinstance(row, str) else tuple(sorted(set(row) - set(columns)))
    event = ChangeEvent(
        source="erp",
        collection="equipment",
        key="" if op == "truncate" else "F-17",
        op=op,  # type: ignore[arg-type]
        position=Position(0, number + 1, UPSERT if op == "upsert" else DELETE, "0" * 16).sort_key(),
        version=str(number + 1),
        occurred_at=f"2025-01-01T00:00:{number:02d}.000000Z",
        columns=columns,
        unavailable=unavailable,
    )
    return Arrived(f"log:{number}", event)


async def ending(state: State, order: list[int], history: list[Row]) -> Any:
    reconciler = Reconciler(state)
    seen: list[str] = []
    for number in order:
        done = await reconciler.reconcile([arrived(number, history[number])])
        seen += [record.position for record in done.advanced if record.document == KEY]
    standing = (await state.records([KEY])).get(KEY)
    if standing is None:
        return None
    assert seen[-1] == standing.position, "the last that was handed on is what stands"
    assert seen == sorted(seen), "and nobody is handed something older after something newer"
    return standing.op, as_sent(standing.position), standing.version, standing.columns


async def both(history: list[Row], order: list[int]) -> None:
    with scratch() as folder:
        ends = [await _run(folder, name, o, history) for name, o in (("in", list(range(len(history)))), ("any", order))]
        assert ends[0] == ends[1]


async def _run(folder: Path, name: str, order: list[int], history: list[Row]) -> Any:
    (folder / name).mkdir()
    database = open_state_database(folder / name)
    try:
        return await ending(sqlite_state(database), order, history)
    finally:
        await database.close()


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Row], list[int]]:
    history = draw(st.lists(rows, min_size=2, max_size=6))
    order = list(draw(st.permutations(range(len(history)))))
    for again in draw(st.lists(st.integers(0, len(history) - 1), max_size=2)):
        order.insert(draw(st.integers(0, len(order))), again)
    return history, order


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
@example(([LONG, SHORT], [1, 0]))
@example(([LONG, SHORT, SHORT], [2, 1, 0]))
@example(([LONG, {"a": "新", "b": 3}, SHORT], [0, 2, 1]))
@example(([LONG, "delete", SHORT], [0, 2, 1]))
@example(([LONG, "truncate", SHORT], [0, 2, 1]))
@example(([LONG, "truncate", SHORT], [2, 1, 0]))
@example(([LONG, "truncate", SHORT, SHORT], [1, 3, 0, 2]))
@example(([LONG, {"b": 5}, SHORT], [0, 2, 1]))
@example(([LONG, SHORT, SHORT], [0, 2, 0, 1]))
def test_any_order_of_arrival_ends_the_same(case: tuple[list[Row], list[int]]) -> None:
    asyncio.run(both(*case))


async def test_the_version_that_has_the_column_comes_last(state: State) -> None:
    reconciler = Reconciler(state)
    first = await reconciler.reconcile([arrived(1, SHORT)])
    assert first.advanced[0].columns == {"b": 2}
    late = await reconciler.reconcile([arrived(0, LONG)])
    assert [o.outcome for o in late.ended] == ["superseded"]
    (filled,) = late.advanced
    assert (filled.version, filled.columns) == ("2", {"a": "長文", "b": 2})
    assert filled.position > first.advanced[0].position, "so that every index takes it as something new"
    again = await reconciler.reconcile([arrived(0, LONG)])
    assert [r.position for r in again.advanced] == [filled.position], "after a crash it is handed on again, as it was"
