"""Publishing: marks of writers, the commit with its declared names, the end."""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.backends.sql_state import manifests, name_changes, outcomes
from pipeline.backends.sql_state.transaction import Transaction, marks, sliced, value_rows
from pipeline.clock import earlier
from pipeline.ports.publishing import Begun, Committed, DeclaredName, Finish
from schemas.document import Manifest

UNFINISHED = """
    SELECT r.document FROM records r LEFT JOIN manifests m ON m.generation = ? AND m.document = r.document
    WHERE r.position <> '' AND (
        m.document IS NULL OR r.position > m.position OR m.collected = 0 OR m.stage = 'text'
        OR (? = 1 AND r.origins <> '[]')
        OR EXISTS (SELECT 1 FROM relinks l WHERE l.generation = ? AND l.document = r.document)
        OR EXISTS (SELECT 1 FROM staging s WHERE s.generation = ? AND s.document = r.document))
      AND r.document IN """
LEFTOVERS = """
    SELECT document FROM (
        SELECT * FROM (
            SELECT DISTINCT 0 AS kind, s.document FROM staging s WHERE s.generation = ? AND s.since < ? AND {known}
            ORDER BY s.document LIMIT ?) AS marked
        UNION ALL SELECT * FROM (
            SELECT 1 AS kind, s.document FROM relinks s WHERE s.generation = ? AND {known}
            ORDER BY s.document LIMIT ?) AS relinked
        UNION ALL SELECT * FROM (
            SELECT 1 AS kind, s.document FROM manifests s
            WHERE s.generation = ? AND (s.collected = 0 OR s.stage = 'text') AND {known}
            ORDER BY s.document LIMIT ?) AS committed
        UNION ALL SELECT * FROM (
            SELECT 1 AS kind, document FROM records WHERE origins <> '[]' AND position <> '' AND ? = 1
            ORDER BY document LIMIT ?) AS unannounced
        ) AS found
    GROUP BY document ORDER BY min(kind), document LIMIT ?""".format(  # noqa: S608
    known="EXISTS (SELECT 1 FROM records r WHERE r.document = s.document AND r.position <> '')"
)
# Limited in each part: no more is read, however many there are.


def begin(tx: Transaction, generation: str, documents: Sequence[str], writer: str, known: int) -> Begun:
    """Mark documents, take relinking marks off, and read what stands."""
    ordered = sorted(set(documents))
    at = mark(tx, generation, ordered, writer)
    relinking: set[str] = set()
    for part in sliced(ordered):
        rows = tx.execute(
            f"DELETE FROM relinks WHERE generation = ? AND document IN ({marks(len(part))}) RETURNING document",  # noqa: S608
            (generation, *part),
        )
        relinking.update(document for (document,) in rows)
    # After the marks: the change for which a document was marked is among these.
    changes = name_changes.above(tx, generation, known)
    return Begun(manifests.get(tx, generation, ordered), changes, at, frozenset(relinking))


def mark(tx: Transaction, generation: str, documents: Sequence[str], writer: str) -> str:
    """Leave or renew a writer's marks, under the database's time: the clocks of writers differ. Return the first."""
    times: list[str] = []
    row = f"(?, ?, ?, {tx.now})"
    for part in sliced(sorted(documents)):
        rows = tx.execute(
            f"INSERT INTO staging (generation, document, writer, since) VALUES {', '.join([row] * len(part))}"  # noqa: S608
            " ON CONFLICT (generation, document, writer) DO UPDATE SET since = excluded.since RETURNING since",
            [value for document in part for value in (generation, document, writer)],
        )
        times += [since for (since,) in rows]
    return min(times) if times else _now(tx)


def _now(tx: Transaction) -> str:
    [(now,)] = tx.execute(f"SELECT {tx.now}")
    return str(now)


def commit(
    tx: Transaction,
    generation: str,
    offered: Sequence[Manifest],
    declared: Mapping[str, Sequence[DeclaredName]],
    known: int,
) -> Committed:
    """Compare and set, and replace the winners' names."""
    won = manifests.commit(tx, generation, offered)
    winners = {m.document for m, ok in zip(offered, won, strict=True) if ok}
    numbers = name_changes.replace(tx, generation, {d: n for d, n in declared.items() if d in winners})
    # Last: the rows above are locked, so whoever committed one of them before has its changes in here.
    changes = name_changes.above(tx, generation, known)
    return Committed(won, [change for change in changes if change.number in numbers], changes)


def finish(
    tx: Transaction,
    generation: str,
    done: Sequence[Finish],
    revision: int,
    *,
    writer: str,
    stale: str,
    left: Sequence[str],
) -> list[bool]:
    """End what still stands as it was committed."""
    bodies = {one.manifest.document: msgspec.json.encode(one.manifest) for one in done}
    standing: set[str] = set()
    for part in sliced(sorted(bodies)):
        rows = tx.execute(
            f"SELECT document, body FROM manifests WHERE generation = ? AND document IN ({marks(len(part))})"  # noqa: S608
            f" ORDER BY document{tx.row_lock}",
            (generation, *part),
        )
        same = [document for document, body in rows if bytes(body) == bodies[document]]
        if not same:
            continue
        tx.execute(
            "UPDATE manifests SET collected = 1, revision = ? WHERE generation = ?"  # noqa: S608
            f" AND document IN ({marks(len(same))})",
            (revision, generation, *same),
        )
        standing.update(same)
    ended = [one for one in done if one.manifest.document in standing]
    outcomes.announce(tx, [outcome for one in ended for outcome in one.outcomes])
    outcomes.outlived(tx, [(one.manifest.document, one.manifest.position) for one in ended if one.mends], generation)
    _note_unrefined(tx, generation, ended)
    _unmark(tx, generation, sorted(standing), writer, stale)
    # Nothing was written to the indexes of these: what another writer may have written is still to be made good.
    _unmark(tx, generation, left, writer, "")
    return [one.manifest.document in standing for one in done]


def _unmark(tx: Transaction, generation: str, documents: Sequence[str], writer: str, stale: str) -> None:
    for part in sliced(documents):
        tx.execute(
            f"DELETE FROM staging WHERE generation = ? AND (writer = ? OR since < ?)"  # noqa: S608
            f" AND document IN ({marks(len(part))})",
            (generation, writer, stale, *part),
        )


def _note_unrefined(tx: Transaction, generation: str, ended: Sequence[Finish]) -> None:
    lacking = sorted({one.manifest.document for one in ended if one.unrefined})
    whole = sorted({one.manifest.document for one in ended if one.unrefined is False})
    for part in sliced(lacking):
        tx.execute(
            f"INSERT INTO unrefined (generation, document) VALUES {value_rows(len(part), 2)} ON CONFLICT DO NOTHING",  # noqa: S608
            [value for document in part for value in (generation, document)],
        )
    for part in sliced(whole):
        tx.execute(
            f"DELETE FROM unrefined WHERE generation = ? AND document IN ({marks(len(part))})",  # noqa: S608
            (generation, *part),
        )


def unrefined(tx: Transaction, generation: str, after: str, limit: int) -> list[str]:
    """Return what lacks vectors of sentences."""
    query = "SELECT document FROM unrefined WHERE generation = ? AND document > ? ORDER BY document LIMIT ?"
    return [document for (document,) in tx.execute(query, (generation, after, limit))]


def unfinished(tx: Transaction, generation: str, documents: Sequence[str], announces: bool) -> set[str]:
    """Return the pending ones."""
    found: set[str] = set()
    for part in sliced(documents):
        given = (generation, int(announces), generation, generation, *part)
        found.update(document for (document,) in tx.execute(f"{UNFINISHED}({marks(len(part))})", given))
    return found


def leftovers(tx: Transaction, generation: str, older_s: float, announces: bool, limit: int) -> list[str]:
    """Return what was left half done."""
    stale = earlier(_now(tx), older_s)
    given = (generation, stale, limit, generation, limit, generation, limit, int(announces), limit, limit)
    return [document for (document,) in tx.execute(LEFTOVERS, given)]


def positions(tx: Transaction, documents: Sequence[str]) -> dict[str, str]:
    """Return the positions of records."""
    found: dict[str, str] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT document, position FROM records WHERE position <> '' AND document IN ({marks(len(part))})",  # noqa: S608
            part,
        )
        found.update(dict(rows))
    return found
