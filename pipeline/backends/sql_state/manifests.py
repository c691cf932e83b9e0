"""Manifests: the commit point of each document, per generation."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from pipeline.backends.sql_state.transaction import Transaction, marks, sliced, value_rows
from pipeline.ports.state import Pending
from schemas.document import Manifest

COMMITTED_AT_ONCE = 500
PENDING = """
    SELECT r.document, r.position, m.document IS NULL, coalesce(m.stage, '')
    FROM records r
    LEFT JOIN manifests m ON m.generation = ? AND m.document = r.document
    LEFT JOIN relinks l ON l.generation = ? AND l.document = r.document
    WHERE r.document > ? AND r.position <> '' AND (
        m.document IS NULL OR r.origins <> '[]'
        OR r.position > m.position OR m.collected = 0 OR m.stage = 'text' OR l.document IS NOT NULL
        OR EXISTS (SELECT 1 FROM staging s WHERE s.generation = ? AND s.document = r.document))
    ORDER BY r.document LIMIT ?"""


def pending(tx: Transaction, generation: str, after: str, limit: int) -> list[Pending]:
    """Return documents whose indexes are behind."""
    rows = tx.execute(PENDING, (generation, generation, after, generation, limit))
    return [Pending(document, position, bool(fresh), stage) for document, position, fresh, stage in rows]


decode: Callable[[bytes], Manifest] = msgspec.json.Decoder(Manifest).decode


def get(
    tx: Transaction, generation: str, documents: Sequence[str], decoded: Callable[[bytes], Manifest] = decode
) -> dict[str, Manifest]:
    """Return committed manifests."""
    found: dict[str, Manifest] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT document, body FROM manifests WHERE generation = ? AND document IN ({marks(len(part))})",  # noqa: S608
            (generation, *part),
        )
        found.update([(document, decoded(body)) for document, body in rows])
    return found


def commit(tx: Transaction, generation: str, manifests: Sequence[Manifest]) -> list[bool]:
    """Compare and set, in order."""
    won: list[bool] = []
    for run in _runs(manifests):
        names = _commit(tx, generation, run)
        won += [manifest.document in names for manifest in run]
    return won


def _runs(manifests: Sequence[Manifest]) -> list[list[Manifest]]:
    """Cut where a document comes again: one statement cannot set a row twice."""
    runs: list[list[Manifest]] = []
    seen: set[str] = set()
    for manifest in manifests:
        if not runs or manifest.document in seen or len(runs[-1]) >= COMMITTED_AT_ONCE:
            runs.append([])
            seen = set()
        runs[-1].append(manifest)
        seen.add(manifest.document)
    return runs


def _commit(tx: Transaction, generation: str, run: Sequence[Manifest]) -> set[str]:
    # A text stage may only stand where nothing full ever stood. In order of the key, so that two writers of the
    # same documents wait for each other instead of dead-locking.
    rows = tx.execute(
        f"""INSERT INTO manifests (generation, document, position, collected, stage, revision, op, body)
           VALUES {value_rows(len(run), 8)}
           ON CONFLICT (generation, document) DO UPDATE SET position = excluded.position, collected = 0,
               stage = excluded.stage, op = excluded.op, body = excluded.body
           WHERE excluded.position >= manifests.position
               AND (excluded.stage = 'full' OR manifests.stage = 'text')
           RETURNING document""",  # noqa: S608
        [
            value
            for m in sorted(run, key=lambda manifest: manifest.document)
            for value in (generation, m.document, m.position, 0, m.stage, 0, m.op, msgspec.json.encode(m))
        ],
    )
    return {document for (document,) in rows}


def collected(tx: Transaction, generation: str, done: Sequence[tuple[str, str]], revision: int) -> None:
    """Mark pairs whose committed position is still the one given."""
    for part in sliced(sorted(done)):
        tx.execute(
            "UPDATE manifests SET collected = 1, revision = ? WHERE generation = ?"  # noqa: S608
            f" AND (document, position) IN (VALUES {value_rows(len(part), 2)})",
            [revision, generation, *(value for pair in part for value in pair)],
        )


def settled(tx: Transaction, generation: str, documents: Sequence[str]) -> dict[str, str]:
    """Return positions that are committed, collected and full."""
    found: dict[str, str] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT document, position FROM manifests WHERE generation = ? AND collected = 1 AND stage = 'full'"  # noqa: S608
            f" AND document IN ({marks(len(part))})",
            (generation, *part),
        )
        found.update(dict(rows))
    return found


def stages(tx: Transaction, generation: str, documents: Sequence[str]) -> dict[str, str]:
    """Return the committed stage of documents that have an applied version."""
    found: dict[str, str] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT document, stage FROM manifests WHERE generation = ? AND document IN ({marks(len(part))})",  # noqa: S608
            (generation, *part),
        )
        found.update(dict(rows))
    return found


def uncollect_after(tx: Transaction, generation: str, revision: int) -> int:
    """Put manifests back to work whose index changes may be lost."""
    rows = tx.execute(
        "UPDATE manifests SET collected = 0 WHERE generation = ? AND revision > ? AND collected = 1 RETURNING document",
        (generation, revision),
    )
    return len(rows)


def uncollect(tx: Transaction, generation: str, broken: Mapping[str, Sequence[Manifest]]) -> dict[str, list[str]]:
    """Put manifests back to work that an index does not hold, and count them."""
    given = {manifest.document: manifest for some in broken.values() for manifest in some}
    standing: set[str] = set()
    for part in sliced(sorted(given)):
        rows = tx.execute(
            f"""SELECT m.document, m.body FROM manifests m
                WHERE m.generation = ? AND m.collected = 1 AND m.document IN ({marks(len(part))}) AND NOT EXISTS
                    (SELECT 1 FROM staging s WHERE s.generation = m.generation AND s.document = m.document)
                ORDER BY m.document{tx.row_lock}""",  # noqa: S608
            (generation, *part),
        )
        # As read, not to the byte: an older version may have written it without a field that has come since.
        same = [document for document, body in rows if decode(body) == given[document]]
        tx.executemany(
            "UPDATE manifests SET collected = 0 WHERE generation = ? AND document = ?",
            [(generation, document) for document in same],
        )
        standing.update(same)
    marked = {index: sorted({m.document for m in some} & standing) for index, some in broken.items()}
    tx.executemany(
        "INSERT INTO index_repairs (generation, store, documents) VALUES (?, ?, ?) ON CONFLICT (generation, store)"
        " DO UPDATE SET documents = index_repairs.documents + excluded.documents",
        [(generation, index, len(documents)) for index, documents in sorted(marked.items()) if documents],
    )
    return {index: documents for index, documents in marked.items() if documents}


def revision(tx: Transaction, generation: str) -> int:
    """Return the highest revision."""
    rows = tx.execute("SELECT coalesce(max(revision), 0) FROM manifests WHERE generation = ?", (generation,))
    return int(rows[0][0])


def page(tx: Transaction, generation: str, after: str, limit: int) -> list[Manifest]:
    """Return committed manifests in key order."""
    rows = tx.execute(
        "SELECT body FROM manifests WHERE generation = ? AND document > ? ORDER BY document LIMIT ?",
        (generation, after, limit),
    )
    return [decode(body) for (body,) in rows]


def collected_page(tx: Transaction, generation: str, after: str, limit: int) -> list[Manifest]:
    """Return collected manifests in key order."""
    rows = tx.execute(
        "SELECT body FROM manifests WHERE generation = ? AND document > ? AND collected = 1 ORDER BY document LIMIT ?",
        (generation, after, limit),
    )
    return [decode(body) for (body,) in rows]


def mark_relinks(tx: Transaction, generation: str, documents: Sequence[str]) -> None:
    """Mark documents for relinking."""
    tx.executemany(
        "INSERT INTO relinks (generation, document) VALUES (?, ?) ON CONFLICT DO NOTHING",
        [(generation, document) for document in documents],
    )


def clear_relinks(tx: Transaction, generation: str, documents: Sequence[str]) -> None:
    """Remove marks."""
    tx.executemany(
        "DELETE FROM relinks WHERE generation = ? AND document = ?", [(generation, document) for document in documents]
    )


def counts(tx: Transaction, generation: str) -> dict[str, int]:
    """Count what status shows."""
    found = dict.fromkeys(("documents", "text", "full", "uncollected"), 0)
    rows = tx.execute(
        "SELECT stage, op, collected, count(*) FROM manifests WHERE generation = ? GROUP BY stage, op, collected",
        (generation,),
    )
    for stage, op, is_collected, number in rows:
        found["documents"] += number if op == "upsert" else 0
        found[stage] += number if op == "upsert" else 0
        found["uncollected"] += 0 if is_collected else number
    found["records"] = int(tx.execute("SELECT count(*) FROM records WHERE position <> ''")[0][0])
    found["relinks"] = int(tx.execute("SELECT count(*) FROM relinks WHERE generation = ?", (generation,))[0][0])
    found["unrefined"] = int(tx.execute("SELECT count(*) FROM unrefined WHERE generation = ?", (generation,))[0][0])
    repaired = tx.execute("SELECT store, documents FROM index_repairs WHERE generation = ?", (generation,))
    found |= {f"repaired.{index}": int(number) for index, number in repaired}
    return found
