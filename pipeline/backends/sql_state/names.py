"""Names that records declare, per generation."""

from collections.abc import Iterator, Mapping, Sequence

from pipeline.backends.sql_state.transaction import Transaction, marks, sliced
from pipeline.ports.state import DeclaredName

Declaration = tuple[str, str, str]
"""(name, family, entity key)."""
Entity = tuple[str, str]
"""(family, key)."""


def replace(tx: Transaction, generation: str, declared: Mapping[str, Sequence[DeclaredName]]) -> list[str]:
    """Replace documents' names; return the names whose set of entities changed."""
    standing, wanted, touched = _compared(tx, generation, declared)
    if not touched:
        return []
    _take_turns(tx, generation)
    before = _entities(tx, generation, touched)
    for document in declared:
        _write(tx, generation, document, standing[document], wanted[document])
    after = _entities(tx, generation, touched)
    return [name for name in touched if before.get(name) != after.get(name)]


def _take_turns(tx: Transaction, generation: str) -> None:
    """Let one at a time change names: of two that each take one of two declarations away, the second sees it gone."""
    tx.execute("INSERT INTO name_counters (generation, number) VALUES (?, 0) ON CONFLICT DO NOTHING", (generation,))
    tx.execute(f"SELECT number FROM name_counters WHERE generation = ?{tx.row_lock}", (generation,))  # noqa: S608


def _compared(
    tx: Transaction, generation: str, declared: Mapping[str, Sequence[DeclaredName]]
) -> tuple[dict[str, set[Declaration]], dict[str, set[Declaration]], list[str]]:
    """Return what stands and what is wanted per document, and the names that differ, ordered."""
    standing: dict[str, set[Declaration]] = {document: set() for document in declared}
    for part in sliced(list(declared)):
        rows = tx.execute(
            f"SELECT document, name, family, entity FROM names WHERE generation = ?"  # noqa: S608
            f" AND document IN ({marks(len(part))})",
            (generation, *part),
        )
        for document, name, family, entity in rows:
            standing[document].add((name, family, entity))
    wanted = {document: {(n.name, n.family, n.key) for n in names} for document, names in declared.items()}
    touched = sorted({name for document in declared for name, _, _ in wanted[document] ^ standing[document]})
    return standing, wanted, touched


def _write(
    tx: Transaction, generation: str, document: str, standing: set[Declaration], wanted: set[Declaration]
) -> None:
    tx.executemany(
        "DELETE FROM names WHERE generation = ? AND name = ? AND family = ? AND entity = ? AND document = ?",
        [(generation, *name, document) for name in standing - wanted],
    )
    tx.executemany(
        "INSERT INTO names (generation, name, family, entity, document) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(generation, *name, document) for name in wanted - standing],
    )


def _entities(tx: Transaction, generation: str, names: Sequence[str]) -> dict[str, set[Entity]]:
    found: dict[str, set[Entity]] = {}
    for name, entity, _ in _holders(tx, generation, names):
        found.setdefault(name, set()).add(entity)
    return found


def _holders(tx: Transaction, generation: str, names: Sequence[str]) -> Iterator[tuple[str, Entity, str]]:
    """Yield (name, entity, declaring document)."""
    for part in sliced(names):
        rows = tx.execute(
            f"SELECT name, family, entity, document FROM names WHERE generation = ?"  # noqa: S608
            f" AND name IN ({marks(len(part))})",
            (generation, *part),
        )
        for name, family, entity, document in rows:
            yield name, (family, entity), document


def declared(tx: Transaction, generation: str) -> list[DeclaredName]:
    """Return distinct (name, entity), with the first declaring document."""
    rows = tx.execute(
        "SELECT name, family, entity, min(document) FROM names WHERE generation = ?"
        " GROUP BY name, family, entity ORDER BY name, family, entity",
        (generation,),
    )
    return [DeclaredName(*row) for row in rows]
