"""Generations, offsets and access classes."""

from collections.abc import Sequence

import msgspec

from pipeline.backends.sql_state.transaction import Transaction
from pipeline.ports.state import Generation
from schemas.access import AccessRule


def offset(tx: Transaction, consumer: str) -> int:
    """Return a committed offset."""
    rows = tx.execute("SELECT value FROM offsets WHERE consumer = ?", (consumer,))
    return int(rows[0][0]) if rows else 0


def commit_offset(tx: Transaction, consumer: str, value: int) -> None:
    """Raise an offset."""
    tx.execute(
        "INSERT INTO offsets (consumer, value) VALUES (?, ?) ON CONFLICT (consumer) DO UPDATE"
        " SET value = excluded.value WHERE excluded.value > offsets.value",
        (consumer, value),
    )


def remember_classes(tx: Transaction, rules: Sequence[AccessRule]) -> None:
    """Keep rules by class."""
    tx.executemany(
        "INSERT INTO access_classes (id, rule) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(rule.access_class(), msgspec.json.encode(rule).decode()) for rule in rules],
    )


def access_classes(tx: Transaction) -> dict[str, AccessRule]:
    """Return all classes."""
    rows = tx.execute("SELECT id, rule FROM access_classes ORDER BY id")
    return {name: msgspec.json.decode(rule, type=AccessRule) for name, rule in rows}


def generations(tx: Transaction) -> list[Generation]:
    """Return generations, oldest first."""
    rows = tx.execute("SELECT name, state, created_at, versions FROM generations ORDER BY created_at, name")
    return [
        Generation(name=name, state=state, created_at=created, versions=msgspec.json.decode(versions))
        for name, state, created, versions in rows
    ]


def create(tx: Transaction, generation: Generation) -> None:
    """Add a generation in state `building`."""
    tx.execute(
        "INSERT INTO generations (name, state, created_at, versions) VALUES (?, 'building', ?, ?)"
        " ON CONFLICT DO NOTHING",
        (generation.name, generation.created_at, msgspec.json.encode(generation.versions).decode()),
    )


def promote(tx: Transaction, name: str) -> None:
    """Switch the live generation."""
    # All rows are locked, in one order: two promoters at once would leave two live ones.
    known = tx.execute(f"SELECT name FROM generations ORDER BY name{tx.row_lock}")  # noqa: S608
    if (name,) not in [tuple(row) for row in known]:
        raise KeyError(f"no generation named {name!r}")
    tx.execute("UPDATE generations SET state = 'retired' WHERE state = 'live' AND name <> ?", (name,))
    tx.execute("UPDATE generations SET state = 'live' WHERE name = ?", (name,))


def drop(tx: Transaction, name: str) -> None:
    """Forget a generation that is not live."""
    if tx.execute("SELECT name FROM generations WHERE name = ? AND state = 'live'", (name,)):
        raise ValueError(f"generation {name!r} is live: promote another one first")
    for table, column in (("manifests", "generation"), ("names", "generation"), ("relinks", "generation")):
        tx.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))  # noqa: S608
    tx.execute("DELETE FROM generations WHERE name = ?", (name,))
