"""Whether what a search would find agrees with the rows."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator

import apsw
import msgspec

from pipeline.backends.chunks_sqlite_rows import COLUMNS, unpack_tokens
from pipeline.backends.chunks_sqlite_writes import dimensions
from pipeline.backends.fts5_tokens import indexed_form
from pipeline.errors import BackendUnavailable
from schemas.document import Analysis, IndexedChunk


class Audit(msgspec.Struct, frozen=True):
    """Ids of chunks whose tokens, or whose vector, a search would not find as the rows tell them."""

    tokens: frozenset[str]
    vectors: frozenset[str]

    def as_searched(self, chunk: IndexedChunk) -> IndexedChunk:
        """Return the chunk without what the index does not truly hold."""
        if chunk.id in self.tokens:
            bare = Analysis(terms=(), bigrams=(), identifiers=(), mentions=chunk.analysis.mentions)
            chunk = msgspec.structs.replace(chunk, analysis=bare, title_terms=())
        if chunk.id in self.vectors:
            chunk = msgspec.structs.replace(chunk, vector=None, vector_model="", sentence_vectors=b"")
        return chunk


def audit(connection: apsw.Connection) -> Audit:
    """Check both indexes. Must run on a connection that may write (FTS5's own check is an INSERT).

    Raises BackendUnavailable when an index has entries that belong to no chunk.
    """
    tokens = frozenset[str]()
    try:
        with _savepoint(connection):
            connection.execute("INSERT INTO lexical (lexical, rank) VALUES ('integrity-check', 1)")
    except apsw.CorruptError:
        tokens = _wrong_tokens(connection)
    return Audit(tokens, _wrong_vectors(connection))


@contextlib.contextmanager
def _savepoint(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("SAVEPOINT audit")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK TO audit")
        raise
    finally:
        connection.execute("RELEASE audit")


def _wrong_tokens(connection: apsw.Connection) -> frozenset[str]:
    """Compare the index with the rows, entry by entry; slow, for when FTS5's check has failed."""
    connection.execute("CREATE VIRTUAL TABLE temp.lexical_entries USING fts5vocab(main, lexical, instance)")
    found: dict[int, int] = defaultdict(int)
    for term, n, column, offset in connection.execute("SELECT term, doc, col, offset FROM lexical_entries"):
        found[n] += hash((term, column, offset))
    connection.execute("DROP TABLE temp.lexical_entries")
    wrong = set()
    for n, chunk_id, blob in connection.execute("SELECT n, id, tokens FROM chunk JOIN content USING (n)"):
        if found.pop(n, 0) != _entries(blob):
            wrong.add(chunk_id)
    if found:
        raise BackendUnavailable(
            f"{connection.filename}: the lexical index holds terms of {len(found)} chunks that are gone; "
            "rebuild it by `shinsen replay`"
        )
    return frozenset(wrong)


def _entries(blob: bytes) -> int:
    """Sum up the index entries that a row's tokens should have, in any order."""
    total = 0
    for column, tokens in zip(COLUMNS, unpack_tokens(blob), strict=True):
        for offset, token in enumerate(token for token in tokens if token):
            total += hash((indexed_form(token), column, offset))
    return total


def _wrong_vectors(connection: apsw.Connection) -> frozenset[str]:
    if not dimensions(connection):
        return frozenset()
    classes = dict(connection.execute("SELECT rowid, class FROM vector"))
    wrong = set()
    for n, chunk_id, access_class, model in connection.execute("SELECT n, id, class, vector_model FROM chunk"):
        there = classes.pop(n, None)
        if (there is not None) != bool(model) or (there is not None and there != access_class):
            wrong.add(chunk_id)
    if classes:
        raise BackendUnavailable(
            f"{connection.filename}: {len(classes)} vectors belong to no chunk; rebuild it by `shinsen replay`"
        )
    return frozenset(wrong)
