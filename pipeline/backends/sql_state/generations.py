"""Offsets, access classes, and the rows of generations."""

from collections.abc import Sequence

import msgspec

from pipeline.backends.sql_state import outcomes
from pipeline.backends.sql_state.transaction import Transaction
from pipeline.ports.generations import Behind, Generation, Promotion, Rebuild, Standing
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


NAMES = "generation-names"
"""The offset that remembers the highest number that a generation's name ever had."""
PARTS = (
    *("manifests", "names", "relinks", "staging", "name_changes", "name_counters", "rebuilds", "index_repairs"),
    "unrefined",
)
"""Tables that hold parts of a generation."""
OLDER = """
    SELECT l.document FROM manifests l LEFT JOIN manifests n ON n.generation = ? AND n.document = l.document
    WHERE l.generation = ? AND (n.document IS NULL OR n.position < l.position
        OR (n.stage = 'text' AND l.stage = 'full' AND n.position = l.position))
    ORDER BY l.document LIMIT 10"""
_LACKS = "m.document IS NULL OR r.position > m.position OR m.collected = 0 OR m.stage = 'text'"
STANDING = f"""
    SELECT count(*), coalesce(sum(CASE WHEN {_LACKS} THEN 1 ELSE 0 END), 0)
    FROM records r LEFT JOIN manifests m ON m.generation = ? AND m.document = r.document
    WHERE r.position <> ''"""  # noqa: S608
BEHIND = f"""
    SELECT r.document, r.position
    FROM records r LEFT JOIN manifests m ON m.generation = ? AND m.document = r.document
    WHERE r.document > ? AND r.document >= ? AND r.document < ? AND r.position <> '' AND ({_LACKS})
    ORDER BY r.document LIMIT ?"""  # noqa: S608


def generations(tx: Transaction) -> list[Generation]:
    """Return generations, oldest first."""
    rows = tx.execute("SELECT name, state, created_at, versions FROM generations ORDER BY created_at, name")
    return [
        Generation(name=name, state=state, created_at=created, versions=msgspec.json.decode(versions))
        for name, state, created, versions in rows
    ]


def next_name(tx: Transaction) -> str:
    """Return the name after the highest one that there is or was."""
    known = [name for (name,) in tx.execute("SELECT name FROM generations")]
    return f"g{max([offset(tx, NAMES), *map(_number, known)]) + 1}"


def _number(name: str) -> int:
    return int(name[1:]) if name[:1] == "g" and name[1:].isdecimal() and name[1:].isascii() else 0


def create(tx: Transaction, generation: Generation, noted: Rebuild | None) -> None:
    """Add a generation in state `building`."""
    made = tx.execute(
        "INSERT INTO generations (name, state, created_at, versions) VALUES (?, 'building', ?, ?)"
        " ON CONFLICT DO NOTHING RETURNING name",
        (generation.name, generation.created_at, msgspec.json.encode(generation.versions).decode()),
    )
    if made and noted is not None:
        save_rebuild(tx, generation.name, noted)
    commit_offset(tx, NAMES, _number(generation.name))


def promote(tx: Transaction, name: str, at: str, unless_older: bool) -> list[str]:
    """Switch the live generation, unless the one there has newer versions."""
    # All rows are locked, in one order: two promoters at once would leave two live ones.
    rows = tx.execute(f"SELECT name, state FROM generations ORDER BY name{tx.row_lock}")  # noqa: S608
    known: dict[str, str] = dict(rows)
    if known.get(name, "pruning") == "pruning":
        raise KeyError(f"no generation named {name!r}")
    live = next((other for other, state in known.items() if state == "live"), "")
    if live == name:
        return []
    older = [document for (document,) in tx.execute(OLDER, (name, live))] if live and unless_older else []
    if not older:
        tx.execute("UPDATE generations SET state = 'retired' WHERE state = 'live'")
        tx.execute("UPDATE generations SET state = 'live' WHERE name = ?", (name,))
        tx.execute(
            "INSERT INTO promotions (number, generation, at) SELECT coalesce(max(number), 0) + 1, ?, ? FROM promotions",
            (name, at),
        )
    return older


def promotions(tx: Transaction) -> list[Promotion]:
    """Return what became live, newest first."""
    rows = tx.execute("SELECT generation, at FROM promotions ORDER BY number DESC")
    return [Promotion(name, at) for name, at in rows]


def begin_prune(tx: Transaction, name: str) -> None:
    """Let nobody use it any more."""
    _refuse_live(tx, name)
    tx.execute("UPDATE generations SET state = 'pruning' WHERE name = ?", (name,))
    tx.execute("DELETE FROM rebuilds WHERE generation = ?", (name,))


def drop(tx: Transaction, name: str) -> None:
    """Forget a generation that is not live."""
    _refuse_live(tx, name)
    for table in PARTS:
        tx.execute(f"DELETE FROM {table} WHERE generation = ?", (name,))  # noqa: S608
    outcomes.drop(tx, name)
    tx.execute("DELETE FROM generations WHERE name = ?", (name,))


def _refuse_live(tx: Transaction, name: str) -> None:
    if tx.execute(f"SELECT name FROM generations WHERE name = ? AND state = 'live'{tx.row_lock}", (name,)):  # noqa: S608
        raise ValueError(f"generation {name!r} is live: promote another one first")


def set_versions(tx: Transaction, name: str, versions: dict[str, str]) -> None:
    """Replace the versions."""
    encoded = msgspec.json.encode(versions).decode()
    tx.execute("UPDATE generations SET versions = ? WHERE name = ?", (encoded, name))


def rebuild(tx: Transaction, name: str) -> Rebuild | None:
    """Return the note of a rebuild."""
    rows = tx.execute("SELECT body FROM rebuilds WHERE generation = ?", (name,))
    return msgspec.json.decode(rows[0][0], type=Rebuild) if rows else None


def save_rebuild(tx: Transaction, name: str, noted: Rebuild) -> None:
    """Replace the note of a rebuild."""
    tx.execute(
        "INSERT INTO rebuilds (generation, body) SELECT name, ? FROM generations WHERE name = ? AND state <> 'pruning'"
        " ON CONFLICT (generation) DO UPDATE SET body = excluded.body",
        (msgspec.json.encode(noted).decode(), name),
    )


def standing(tx: Transaction, name: str) -> Standing:
    """Count records, and those that the generation lacks."""
    ((records, lacking),) = tx.execute(STANDING, (name,))
    ((relinks,),) = tx.execute("SELECT count(*) FROM relinks WHERE generation = ?", (name,))
    return Standing(int(records), int(lacking), int(relinks))


def behind(tx: Transaction, name: str, prefix: str, after: str, limit: int) -> list[Behind]:
    """Return a page of records that the generation lacks."""
    # No key reaches the highest code point with what may follow it.
    rows = tx.execute(BEHIND, (name, after, prefix, f"{prefix}\U0010ffff", limit))
    return [Behind(document, position) for document, position in rows]
