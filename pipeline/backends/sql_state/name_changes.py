"""Changes of declared names, numbered per generation: one row a name, under the number of its last change."""

from collections.abc import Mapping, Sequence

from pipeline.backends.sql_state import names
from pipeline.backends.sql_state.transaction import Row, Transaction
from pipeline.ports.publishing import DeclaredName, NameChange

CHANGES = """
    SELECT c.number, c.name, n.family, n.entity FROM name_changes c
    LEFT JOIN names n ON n.generation = c.generation AND n.name = c.name
    WHERE c.generation = ? AND """
ORDER = " ORDER BY c.number, n.family, n.entity"


def replace(tx: Transaction, generation: str, declared: Mapping[str, Sequence[DeclaredName]]) -> set[int]:
    """Replace documents' names; return the numbers that the changes got."""
    changed = names.replace(tx, generation, declared) if declared else []
    if not changed:
        return set()
    last = int(
        tx.execute(
            "UPDATE name_counters SET number = number + ? WHERE generation = ? RETURNING number",
            (len(changed), generation),
        )[0][0]
    )
    numbers = range(last - len(changed) + 1, last + 1)
    tx.executemany(
        "INSERT INTO name_changes (generation, name, number, looked) VALUES (?, ?, ?, 0)"
        " ON CONFLICT (generation, name) DO UPDATE SET number = excluded.number, looked = 0",
        [(generation, name, number) for name, number in zip(changed, numbers, strict=True)],
    )
    return set(numbers)


def above(tx: Transaction, generation: str, known: int) -> list[NameChange]:
    """Return the changes above a number, in order."""
    return _changes(tx.execute(f"{CHANGES} c.number > ?{ORDER}", (generation, known)))


def unlooked(tx: Transaction, generation: str, limit: int) -> list[NameChange]:
    """Return changes whose holders were not looked up."""
    some = "(SELECT number FROM name_changes WHERE generation = ? AND looked = 0 ORDER BY number LIMIT ?)"
    rows = tx.execute(f"{CHANGES} c.looked = 0 AND c.number IN {some}{ORDER}", (generation, generation, limit))
    return _changes(rows)


def looked_up(tx: Transaction, generation: str, changes: Sequence[NameChange]) -> None:
    """Note a look-up."""
    tx.executemany(
        "UPDATE name_changes SET looked = 1 WHERE generation = ? AND name = ? AND number = ?",
        sorted((generation, change.name, change.number) for change in changes),
    )


def _changes(rows: Sequence[Row]) -> list[NameChange]:
    entities: dict[tuple[int, str], dict[tuple[str, str], None]] = {}
    for number, name, family, entity in rows:
        found = entities.setdefault((number, name), {})
        if family is not None:
            found[family, entity] = None  # several documents may declare the same
    return [NameChange(number, name, tuple(found)) for (number, name), found in entities.items()]
