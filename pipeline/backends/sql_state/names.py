"""Names that records declare, per generation."""

from collections.abc import Sequence

from pipeline.backends.sql_state.transaction import Transaction, marks, sliced
from pipeline.ports.state import DeclaredName


def replace(tx: Transaction, generation: str, document: str, names: Sequence[DeclaredName]) -> list[str]:
    """Replace a document's names; return the names whose set of entities changed."""
    wanted = {(n.name, n.family, n.key) for n in names}
    rows = tx.execute(
        "SELECT name, family, entity FROM names WHERE generation = ? AND document = ?", (generation, document)
    )
    standing = {(name, family, entity) for name, family, entity in rows}
    touched = sorted({name for name, _, _ in wanted ^ standing})
    before = _entities(tx, generation, touched)
    tx.executemany(
        "DELETE FROM names WHERE generation = ? AND name = ? AND family = ? AND entity = ? AND document = ?",
        [(generation, *name, document) for name in standing - wanted],
    )
    tx.executemany(
        "INSERT INTO names (generation, name, family, entity, document) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(generation, *name, document) for name in wanted - standing],
    )
    after = _entities(tx, generation, touched)
    return [name for name in touched if before.get(name) != after.get(name)]


def _entities(tx: Transaction, generation: str, names: Sequence[str]) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for part in sliced(names):
        rows = tx.execute(
            f"SELECT name, family, entity FROM names WHERE generation = ? AND name IN ({marks(len(part))})",  # noqa: S608
            (generation, *part),
        )
        for name, family, entity in rows:
            found.setdefault(name, set()).add((family, entity))
    return found


def declared(tx: Transaction, generation: str) -> list[DeclaredName]:
    """Return distinct (name, entity), with the first declaring document."""
    rows = tx.execute(
        "SELECT name, family, entity, min(document) FROM names WHERE generation = ?"
        " GROUP BY name, family, entity ORDER BY name, family, entity",
        (generation,),
    )
    return [DeclaredName(*row) for row in rows]
