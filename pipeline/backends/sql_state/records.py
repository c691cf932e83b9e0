"""Records and collections: reconciliation by compare-and-set on the source position."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pipeline.backends.sql_state import borrowed
from pipeline.backends.sql_state.transaction import Row, Transaction, marks, sliced, value_rows
from pipeline.ports.state import Advance, CollectionState
from schemas.change_event import split_document_key
from schemas.position import as_sent
from schemas.record import Record

COLLECTION = "source, collection, positioned, floor, floor_version, floor_at"
COLUMNS = "document, op, position, version, occurred_at, columns, origins, lane"


class Floor(NamedTuple):
    """What is remembered of the newest truncate of a collection."""

    position: str
    version: str
    at: str


def _record(row: Row) -> Record:
    document, op, position, version, occurred_at, columns, origins, lane = row
    return Record(
        document=document,
        op=op,
        position=position,
        version=version,
        occurred_at=occurred_at,
        columns=msgspec.json.decode(columns),
        origins=tuple(msgspec.json.decode(origins)),
        lane=lane,
    )


def collection(tx: Transaction, source: str, name: str, positioned: bool) -> CollectionState:
    """Return the row of a collection, made by the first call."""
    tx.execute(
        "INSERT INTO collections (source, collection, positioned, floor, floor_version, floor_at)"
        " VALUES (?, ?, ?, '', '', '') ON CONFLICT DO NOTHING",
        (source, name, int(positioned)),
    )
    rows = tx.execute(
        f"SELECT {COLLECTION} FROM collections WHERE source = ? AND collection = ?",  # noqa: S608
        (source, name),
    )
    return _collection(rows[0])


def collections(tx: Transaction) -> list[CollectionState]:
    """Return all rows in order."""
    rows = tx.execute(f"SELECT {COLLECTION} FROM collections ORDER BY source, collection")  # noqa: S608
    return [_collection(row) for row in rows]


def _collection(row: Row) -> CollectionState:
    source, name, positioned, floor, version, at = row
    return CollectionState(source, name, bool(positioned), floor, version, at)


def set_floor(tx: Transaction, source: str, name: str, floor: str, version: str, at: str) -> None:
    """Raise a floor."""
    tx.execute(
        "UPDATE collections SET floor = ?, floor_version = ?, floor_at = ?"
        " WHERE source = ? AND collection = ? AND floor < ?",
        (floor, version, at, source, name, floor),
    )


class _Standing(msgspec.Struct):
    """What stands now of the locked documents."""

    rows: dict[str, Record]
    origins: dict[str, borrowed.Origins]

    def put(self, record: Record, origins: borrowed.Origins) -> Record:
        self.rows[record.document], self.origins[record.document] = record, origins
        return record


def advance(tx: Transaction, offered: Sequence[Record]) -> list[Advance]:
    """Offer records one by one."""
    documents = sorted({record.document for record in offered})
    standing = _Standing(_locked(tx, documents), borrowed.read(tx, documents))
    before, borrowed_before = dict(standing.rows), dict(standing.origins)
    floors: dict[tuple[str, str], Floor] = {}
    answers = [_offer(tx, record, standing, _floor(tx, record.document, floors)) for record in offered]
    _write(tx, [record for document, record in standing.rows.items() if record is not before[document]])
    borrowed.write(tx, borrowed_before, standing.origins)
    return answers


def _locked(tx: Transaction, documents: Sequence[str]) -> dict[str, Record]:
    """Make, lock and read the rows, in one order: writers of the same keys wait for each other and do not dead-lock."""
    for part in sliced(documents):
        tx.execute(
            f"INSERT INTO records ({COLUMNS}) VALUES {value_rows(len(part), 8)} ON CONFLICT DO NOTHING",  # noqa: S608
            [value for document in part for value in (document, "", "", "", "", b"{}", "[]", "")],
        )
    found: dict[str, Record] = {}
    for part in sliced(documents):
        rows = tx.execute(
            f"SELECT {COLUMNS} FROM records WHERE document IN ({marks(len(part))})"  # noqa: S608
            f" ORDER BY document{tx.row_lock}",
            part,
        )
        found.update({row[0]: _record(row) for row in rows})
    return found


def _floor(tx: Transaction, document: str, floors: dict[tuple[str, str], Floor]) -> Floor:
    source, name, _ = split_document_key(document)
    if (source, name) not in floors:
        # Locked, so that a truncate that runs beside this sees these records, or they see its floor.
        rows = tx.execute(
            "SELECT floor, floor_version, floor_at FROM collections"  # noqa: S608
            f" WHERE source = ? AND collection = ?{tx.share_lock}",
            (source, name),
        )
        floors[source, name] = Floor(*rows[0]) if rows else Floor("", "", "")
    return floors[source, name]


def _offer(tx: Transaction, record: Record, now: _Standing, floor: Floor) -> Advance:
    """Compare with what stands, and put there what shall stand."""
    standing, origins = now.rows[record.document], now.origins.get(record.document, {})
    origin = record.origins[-1] if record.origins else ""
    if origin and origin in standing.origins:
        return Advance("redelivered", standing)
    if record.position < floor.position and standing.position <= floor.position:
        return Advance("truncated", now.put(_truncated(record, standing, floor), {}))
    if record.position <= standing.position:
        if filled := borrowed.late(record, standing, origins, floor.position):
            now.put(*filled)
        # Said again when the event comes again: what was to follow from it may not have happened.
        result = "filled" if record.position in now.origins.get(record.document, {}).values() else ""
        return Advance(result or _lost(tx, record, standing, origin), now.rows[record.document])
    won, origins = borrowed.won(record, standing, origins, floor.position)
    return Advance(
        "advanced", now.put(msgspec.structs.replace(won, origins=(*standing.origins, *won.origins)), origins)
    )


def _truncated(record: Record, standing: Record, floor: Floor) -> Record:
    """Let a delete at the floor stand; what came late must end as if it had come before the truncate."""
    if standing.position == floor.position:
        return standing
    return Record(
        document=record.document,
        op="delete",
        position=floor.position,
        version=floor.version,
        occurred_at=floor.at,
        origins=standing.origins,
        lane=record.lane,
    )


def _lost(tx: Transaction, record: Record, standing: Record, origin: str) -> str:
    if record.position < as_sent(standing.position):
        return "superseded"
    known = tx.execute(
        "SELECT 1 FROM outcomes WHERE event = ? AND outcome = 'applied' UNION ALL"
        " SELECT 1 FROM dead_letters WHERE event = ? AND position = ? AND stage IN ('map', 'apply')",
        (origin, origin, record.position),
    )
    return "redelivered" if known else "duplicate"


def _write(tx: Transaction, records: Sequence[Record]) -> None:
    for part in sliced(records):
        tx.execute(
            f"""INSERT INTO records ({COLUMNS}) VALUES {value_rows(len(part), 8)}
                ON CONFLICT (document) DO UPDATE SET op = excluded.op, position = excluded.position,
                    version = excluded.version, occurred_at = excluded.occurred_at, columns = excluded.columns,
                    origins = excluded.origins, lane = excluded.lane""",  # noqa: S608
            [value for record in part for value in _values(record)],
        )


def _values(record: Record) -> tuple[str | bytes, ...]:
    columns, origins = msgspec.json.encode(record.columns), msgspec.json.encode(record.origins).decode()
    return (
        record.document,
        record.op,
        record.position,
        record.version,
        record.occurred_at,
        columns,
        origins,
        record.lane,
    )


def get(tx: Transaction, documents: Sequence[str]) -> dict[str, Record]:
    """Return the rows that exist."""
    found: dict[str, Record] = {}
    for part in sliced(documents):
        rows = tx.execute(f"SELECT {COLUMNS} FROM records WHERE document IN ({marks(len(part))})", part)  # noqa: S608
        found.update({row[0]: _record(row) for row in rows if row[2]})
    return found


def page(tx: Transaction, prefix: str, after: str, limit: int) -> list[Record]:
    """Return records in key order after `after` that start with `prefix`."""
    rows = tx.execute(
        f"SELECT {COLUMNS} FROM records WHERE document > ? AND document >= ? AND substr(document, 1, ?) = ?"  # noqa: S608
        " AND position <> '' ORDER BY document LIMIT ?",
        (after, prefix, len(prefix), prefix, limit),
    )
    return [_record(row) for row in rows]


def forget_origins(tx: Transaction, events: Mapping[str, Collection[str]]) -> None:
    """Take announced events (by document) off the records' lists."""
    changed: list[tuple[str, str]] = []
    for part in sliced(sorted(events)):
        rows = tx.execute(
            f"SELECT document, origins FROM records WHERE document IN ({marks(len(part))})"  # noqa: S608
            f" AND origins <> '[]' ORDER BY document{tx.row_lock}",
            part,
        )
        for document, origins in rows:
            before = msgspec.json.decode(origins)
            after = [origin for origin in before if origin not in events[document]]
            if after != before:
                changed.append((msgspec.json.encode(after).decode(), document))
    tx.executemany("UPDATE records SET origins = ? WHERE document = ?", changed)


def give_back_origin(tx: Transaction, document: str, position: str, event: str) -> None:
    """Put an event back on the record's list, if that version still stands."""
    rows = tx.execute(
        f"SELECT origins FROM records WHERE document = ? AND position = ?{tx.row_lock}",  # noqa: S608
        (document, position),
    )
    if event and rows and event not in (origins := msgspec.json.decode(rows[0][0])):
        tx.execute(
            "UPDATE records SET origins = ? WHERE document = ?",
            (msgspec.json.encode([*origins, event]).decode(), document),
        )
