"""Columns that an event did not bring: taken from the version before, whenever that one arrives.

A source leaves out large columns that did not change. Their value is that of the newest older version that brought
the column, or of none when the record was deleted in between. For each such column of a standing record it is
remembered which version its value is from. A version that comes late, between that one and the standing one, knows
better: so the same record stands in the end, whatever came first.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.backends.sql_state.transaction import Transaction, marks, sliced, value_rows
from schemas.position import as_sent, next_filling
from schemas.record import Record

Origins = dict[str, str]
"""Column → position of the version that its value is from; empty: no version is known that brought it."""


def read(tx: Transaction, documents: Sequence[str]) -> dict[str, Origins]:
    """Return what stands, of locked records; those that borrowed nothing are absent."""
    found: dict[str, Origins] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT document, origins FROM borrowed_columns WHERE document IN ({marks(len(part))})",  # noqa: S608
            part,
        )
        found.update({document: msgspec.json.decode(origins, type=Origins) for document, origins in rows})
    return found


def write(tx: Transaction, before: Mapping[str, Origins], after: Mapping[str, Origins]) -> None:
    """Store what changed."""
    gone = [document for document in before if not after.get(document)]
    for part in sliced(gone):
        tx.execute(f"DELETE FROM borrowed_columns WHERE document IN ({marks(len(part))})", part)  # noqa: S608
    changed = [(d, origins) for d, origins in after.items() if origins and before.get(d) != origins]
    for rows in sliced(changed):
        tx.execute(
            f"INSERT INTO borrowed_columns (document, origins) VALUES {value_rows(len(rows), 2)}"  # noqa: S608
            " ON CONFLICT (document) DO UPDATE SET origins = excluded.origins",
            [value for document, origins in rows for value in (document, msgspec.json.encode(origins).decode())],
        )


def won(record: Record, standing: Record, origins: Origins, floor: str) -> tuple[Record, Origins]:
    """Fill a winner from what stood; nothing of before a truncate (`floor`) is in it."""
    columns, borrowed = dict(record.columns), {}
    for name in record.unavailable:
        origin = origins.get(name, as_sent(standing.position))
        if name in standing.columns and origin >= floor:
            columns[name] = standing.columns[name]
        borrowed[name] = max(origin, floor)
    return msgspec.structs.replace(record, columns=columns, unavailable=()), borrowed


def late(record: Record, standing: Record, origins: Origins, floor: str) -> tuple[Record, Origins] | None:
    """Fill what stands from an older version that came late; None when it says nothing new.

    The position moves on (see `next_filling`) when a column has changed.
    """
    columns, borrowed = dict(standing.columns), dict(origins)
    if record.position >= as_sent(standing.position):
        return None
    for name, origin in origins.items():
        # At or below the floor the record was gone, whatever this version says.
        position = max(record.position, floor)
        if position <= origin or (name in record.unavailable and record.position > floor):
            continue
        borrowed[name] = position
        columns.pop(name, None)
        if record.position > floor and name in record.columns:
            columns[name] = record.columns[name]
    if borrowed == origins:
        return None
    moved = standing.position if columns == standing.columns else next_filling(standing.position)
    return msgspec.structs.replace(standing, columns=columns, position=moved), borrowed
