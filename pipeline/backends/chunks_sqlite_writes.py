"""Writing and removing chunks, on the writer's connection and inside its transaction."""

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from pipeline.backends.chunks_sqlite_rows import COLUMNS, EncodedChunk
from pipeline.backends.field_values import field_texts
from pipeline.errors import InvalidConfiguration

_INSERT_LEXICAL = (
    f"INSERT INTO lexical (rowid, {', '.join(COLUMNS)}) SELECT n, {', '.join(COLUMNS)} FROM chunk_tokens WHERE n = ?"  # noqa: S608
)


def dimensions(connection: apsw.Connection) -> int:
    """Return the length of this index's vectors, 0 before the first one."""
    found: int | None = connection.execute("SELECT value FROM memo WHERE name = 'dimensions'").get
    return found or 0


def remember_revision(connection: apsw.Connection, revision: int) -> None:
    """Keep the revision, to be committed with what it speaks of."""
    connection.execute("INSERT OR REPLACE INTO memo (name, value) VALUES ('revision', ?)", (revision,))


def write_chunks(connection: apsw.Connection, chunks: Sequence[EncodedChunk]) -> set[int]:
    """Write chunks by id; a later one of the same id wins. Returns the rows written."""
    classes: dict[str, int] = {}
    written: set[int] = set()
    for encoded in chunks:
        name = encoded.chunk.access_class
        if name not in classes:
            classes[name] = _class_number(connection, name)
        written.add(_write_chunk(connection, encoded, classes[name]))
    return written


def _class_number(connection: apsw.Connection, name: str) -> int:
    connection.execute("INSERT OR IGNORE INTO access_class (id) VALUES (?)", (name,))
    number: int = connection.execute("SELECT n FROM access_class WHERE id = ?", (name,)).get
    return number


def _write_chunk(connection: apsw.Connection, encoded: EncodedChunk, access_class: int) -> int:
    there = connection.execute(
        "SELECT c.n, c.fields, c.vector_model, x.tokens, c.class FROM chunk c JOIN content x USING (n) WHERE id = ?",
        (encoded.chunk.id,),
    ).fetchone()
    if there is None:
        return _insert_chunk(connection, encoded, access_class)
    n: int = there[0]
    _, fields, model, tokens, old_class = there
    model = _update_vector(connection, encoded, n, model, access_class, moved=access_class != old_class)
    connection.execute(
        "UPDATE chunk SET document = ?, class = ?, source = ?, collection = ?, type = ?, updated_at = ?, fields = ?,"
        " vector_model = ? WHERE n = ?",
        (*_attributes(encoded, access_class), model, n),
    )
    if fields != encoded.fields:
        _remove_fields(connection, n, fields)
        _insert_fields(connection, n, encoded)
    if tokens == encoded.tokens:
        connection.execute("UPDATE content SET body = ? WHERE n = ? AND body <> ?", (encoded.body, n, encoded.body))
        return n
    connection.execute("DELETE FROM lexical WHERE rowid = ?", (n,))  # reads the old tokens: before the content
    connection.execute("UPDATE content SET body = ?, tokens = ? WHERE n = ?", (encoded.body, encoded.tokens, n))
    connection.execute(_INSERT_LEXICAL, (n,))
    return n


def _attributes(encoded: EncodedChunk, access_class: int) -> tuple[str | int | bytes, ...]:
    chunk = encoded.chunk
    return (
        chunk.document,
        access_class,
        chunk.source,
        chunk.collection,
        chunk.type,
        chunk.updated_at,
        encoded.fields,
    )


def _insert_chunk(connection: apsw.Connection, encoded: EncodedChunk, access_class: int) -> int:
    chunk = encoded.chunk
    connection.execute(
        "INSERT INTO chunk (id, document, class, source, collection, type, updated_at, fields, vector_model)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, '')",
        (chunk.id, *_attributes(encoded, access_class)),
    )
    n = connection.last_insert_rowid()
    connection.execute("INSERT INTO content (n, body, tokens) VALUES (?, ?, ?)", (n, encoded.body, encoded.tokens))
    connection.execute(_INSERT_LEXICAL, (n,))
    _insert_fields(connection, n, encoded)
    if chunk.vector is not None:
        _insert_vector(connection, n, chunk.vector, access_class)
        _write_sentences(connection, n, chunk.sentence_vectors)
        connection.execute("UPDATE chunk SET vector_model = ? WHERE n = ?", (chunk.vector_model, n))
    return n


def _insert_fields(connection: apsw.Connection, n: int, encoded: EncodedChunk) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO chunk_field (name, value, n) VALUES (?, ?, ?)",
        ((name, text, n) for name, value in encoded.chunk.fields.items() for text in field_texts(value)),
    )


def _remove_fields(connection: apsw.Connection, n: int, fields: bytes) -> None:
    connection.executemany(
        "DELETE FROM chunk_field WHERE name = ? AND value = ? AND n = ?",
        ((name, text, n) for name, value in msgspec.json.decode(fields).items() for text in field_texts(value)),
    )


def _update_vector(
    connection: apsw.Connection, encoded: EncodedChunk, n: int, model: str, access_class: int, *, moved: bool
) -> str:
    """Bring the vector of a known chunk up to date; return its model, empty when there is none."""
    chunk = encoded.chunk
    if chunk.vector is None and (not model or chunk.vector_model != model):
        _remove_vector(connection, n)
        return ""
    there = dimensions(connection) and connection.execute("SELECT embedding FROM vector WHERE rowid = ?", (n,)).get
    if chunk.vector is not None and there != chunk.vector:
        _remove_vector(connection, n)
        _insert_vector(connection, n, chunk.vector, access_class)
    elif there and moved:
        connection.execute("UPDATE vector SET class = ? WHERE rowid = ?", (access_class, n))
    if chunk.vector is not None:
        _write_sentences(connection, n, chunk.sentence_vectors)
    return chunk.vector_model if chunk.vector is not None else model


def _insert_vector(connection: apsw.Connection, n: int, vector: bytes, access_class: int) -> None:
    length = len(vector) // 4
    known = dimensions(connection)
    if not known:
        connection.execute(f"CREATE VIRTUAL TABLE vector USING vec0(class integer, embedding float[{length}])")
        connection.execute("INSERT INTO memo (name, value) VALUES ('dimensions', ?)", (length,))
    elif known != length:
        raise InvalidConfiguration(
            f"vectors of {length} dimensions, but this index holds {known}: another embedding model needs "
            "a new generation; run `shinsen replay`"
        )
    connection.execute("INSERT INTO vector (rowid, class, embedding) VALUES (?, ?, ?)", (n, access_class, vector))


def _write_sentences(connection: apsw.Connection, n: int, packed: bytes) -> None:
    """Have a row hold these vectors of its sentences, and write nothing where it does."""
    there = connection.execute("SELECT packed FROM sentence_vectors WHERE n = ?", (n,)).get or b""
    if there and not packed:
        connection.execute("DELETE FROM sentence_vectors WHERE n = ?", (n,))
    elif there != packed:
        connection.execute("INSERT OR REPLACE INTO sentence_vectors (n, packed) VALUES (?, ?)", (n, packed))


def _remove_vector(connection: apsw.Connection, n: int) -> None:
    if dimensions(connection):
        connection.execute("DELETE FROM vector WHERE rowid = ?", (n,))
        connection.execute("DELETE FROM sentence_vectors WHERE n = ?", (n,))


def remove_chunks(connection: apsw.Connection, document: str, live: Iterable[str]) -> set[int]:
    """Remove the document's chunks but the live ones: row, tokens, fields and vector. Returns the rows removed."""
    kept = set(live)
    removed: set[int] = set()
    rows: list[Any] = connection.execute("SELECT n, id, fields FROM chunk WHERE document = ?", (document,)).fetchall()
    for n, chunk_id, fields in rows:
        if chunk_id in kept:
            continue
        connection.execute("DELETE FROM lexical WHERE rowid = ?", (n,))
        _remove_fields(connection, n, fields)
        _remove_vector(connection, n)
        connection.execute("DELETE FROM content WHERE n = ?", (n,))
        connection.execute("DELETE FROM chunk WHERE n = ?", (n,))
        removed.add(n)
    return removed
