"""Epochs and heads of sources."""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.backends.sql_state.transaction import Transaction, marks, sliced
from pipeline.ports.sources import RECENT, EpochStart, SourceHead, SourceNote

HEAD = "source, place, head, version, at, recent"
CONSUMER = "reconciled "
"""Before the place: offsets of places are in the table of offsets."""


def epochs(tx: Transaction) -> list[EpochStart]:
    """Return all in order."""
    rows = tx.execute("SELECT source, epoch, starts, at FROM source_epochs ORDER BY source, epoch")
    return [
        EpochStart(source=source, epoch=epoch, starts=msgspec.json.decode(starts), at=at)
        for source, epoch, starts, at in rows
    ]


def new_epoch(tx: Transaction, source: str, starts: Mapping[str, int], at: str) -> int:
    """Begin the next."""
    ((number,),) = tx.execute("SELECT coalesce(max(epoch), 0) + 1 FROM source_epochs WHERE source = ?", (source,))
    tx.execute(
        "INSERT INTO source_epochs (source, epoch, starts, at) VALUES (?, ?, ?, ?)",
        (source, number, msgspec.json.encode(dict(starts)).decode(), at),
    )
    tx.execute("UPDATE source_heads SET recent = '' WHERE source = ?", (source,))
    return int(number)


def note(tx: Transaction, notes: Sequence[SourceNote], reconciled: Mapping[str, int]) -> None:
    """Raise what is lower."""
    for one in sorted(notes, key=lambda note: (note.source, note.place)):  # one order, no dead lock
        _note(tx, one)
    tx.executemany(
        "INSERT INTO offsets (consumer, value) VALUES (?, ?)"
        " ON CONFLICT (consumer) DO UPDATE SET value = excluded.value WHERE offsets.value < excluded.value",
        [(CONSUMER + place, offset) for place, offset in sorted(reconciled.items())],
    )


def _note(tx: Transaction, one: SourceNote) -> None:
    # First, so that there is a row to lock: of two first notes at once the lower one could stand.
    tx.execute(
        f"INSERT INTO source_heads ({HEAD}) VALUES ({marks(6)}) ON CONFLICT DO NOTHING",  # noqa: S608
        (one.source, one.place, "", "", "", ""),
    )
    [row] = tx.execute(
        f"SELECT {HEAD} FROM source_heads WHERE source = ? AND place = ?{tx.row_lock}",  # noqa: S608
        (one.source, one.place),
    )
    before = _head(row)
    said = one.recent
    if one.mark is not None:
        reached, at = one.mark
        said += "x" if reached < before.head and at > before.at else "."
    top = one if one.head > before.head else before
    tx.execute(
        "UPDATE source_heads SET head = ?, version = ?, at = ?, recent = ? WHERE source = ? AND place = ?",
        (top.head, top.version, top.at, (before.recent + said)[-RECENT:], one.source, one.place),
    )


def heads(tx: Transaction, source: str) -> list[SourceHead]:
    """Return those of a source, or all."""
    rows = tx.execute(
        f"SELECT {HEAD} FROM source_heads WHERE source = ? OR ? = '' ORDER BY source, place",  # noqa: S608
        (source, source),
    )
    return [_head(row) for row in rows]


def _head(row: tuple[str, ...]) -> SourceHead:
    source, place, head, version, at, recent = row
    return SourceHead(source=source, place=place, head=head, version=version, at=at, recent=recent)


def reconciled(tx: Transaction, places: Sequence[str]) -> dict[str, int]:
    """Return the offsets known."""
    found: dict[str, int] = {}
    for part in sliced([CONSUMER + place for place in places]):
        rows = tx.execute(f"SELECT consumer, value FROM offsets WHERE consumer IN ({marks(len(part))})", part)  # noqa: S608
        found.update({consumer.removeprefix(CONSUMER): int(value) for consumer, value in rows})
    return found
