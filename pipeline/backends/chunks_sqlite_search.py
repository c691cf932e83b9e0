"""Searching chunks in SQLite: filters before top-k, exact ranks, ties by id."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from pipeline.backends.chunks_sqlite_rows import unpack_tokens
from pipeline.backends.chunks_sqlite_vectors import Passing, VectorMatrix
from pipeline.backends.chunks_sqlite_writes import dimensions
from pipeline.backends.fts5_tokens import CODE_COLUMNS, all_of, any_of
from pipeline.errors import InvalidConfiguration
from pipeline.ports.chunk_index import ChunkFilter, IndexHit

MAX_K = 4096
"""What sqlite-vec's top-k search goes up to."""

NARROW = 500
"""Chunks that a filter may leave to be looked at one by one."""
_NEXT_TO_NOTHING = 1e-6
"""BM25's idf in FTS5 of a token that half of all chunks hold."""

Condition = tuple[str, tuple[Any, ...]]
_LISTED = "IN (SELECT value FROM json_each(?))"
_CLASS = f"class IN (SELECT n FROM access_class WHERE id {_LISTED})"  # noqa: S608


def _condition(where: ChunkFilter) -> Condition:
    """Return the filter as SQL over `chunk c`; values are bound, never written into it."""
    parts: list[str] = []
    values: list[Any] = []
    if where.access_classes is not None:
        parts.append("c." + _CLASS)
        values.append(json.dumps(where.access_classes))
    listed = {"source": where.sources, "collection": where.collections, "type": where.types}
    for column, wanted in {**listed, "document": where.documents}.items():
        if wanted:
            parts.append(f"c.{column} {_LISTED}")
            values.append(json.dumps(wanted))
    if where.updated_from:
        parts.append("c.updated_at >= ?")
        values.append(where.updated_from)
    if where.updated_to:
        parts.append("c.updated_at < ?")
        values.append(where.updated_to)
    for name, wanted in where.fields.items():
        parts.append(f"c.n IN (SELECT n FROM chunk_field WHERE name = ? AND value {_LISTED})")  # noqa: S608
        values.extend((name, json.dumps(wanted)))
    if where.identifiers:
        parts.append("c.n IN (SELECT rowid FROM lexical WHERE lexical MATCH ?)")
        values.append(any_of(CODE_COLUMNS, where.identifiers))
    return " AND ".join(parts), tuple(values)


def _only_classes(where: ChunkFilter) -> bool:
    return where == ChunkFilter(access_classes=where.access_classes)


def ranked(rows: Iterator[tuple[str, str, float]], limit: int) -> list[IndexHit]:
    """Take the best of rows that come best first, reading on over those that tie with the last one."""
    hits: list[IndexHit] = []
    for chunk_id, document, score in rows:
        if len(hits) >= limit and score < hits[limit - 1].score:
            break
        hits.append(IndexHit(chunk_id, document, score))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def lexical_hits(connection: apsw.Connection, match: str, rank: str, where: ChunkFilter, limit: int) -> list[IndexHit]:
    """Return the best rows of a MATCH expression under a bm25 call, filtered while they are read."""
    condition, values = _condition(where)
    rows = connection.execute(
        "SELECT c.id, c.document, -lexical.rank FROM lexical CROSS JOIN chunk c ON c.n = lexical.rowid"  # noqa: S608
        f" WHERE lexical MATCH ? AND lexical.rank MATCH ? {'AND ' + condition if condition else ''}"
        " ORDER BY lexical.rank",
        (match, rank, *values),
    )
    return ranked(iter(rows), limit)


def common_hits(
    connection: apsw.Connection,
    terms: frozenset[str],
    bigrams: frozenset[str],
    where: ChunkFilter,
    found: Sequence[IndexHit],
) -> list[IndexHit]:
    """Return what holds only tokens too common to be searched for (PostingBudget), where a filter leaves few chunks.

    They come behind those found, by how many of the tokens they hold; their idf is next to nothing. None when
    the filter leaves more than NARROW chunks: then it is no reason for finding little.
    """
    condition, values = _condition(where)
    passing = f"SELECT c.n FROM chunk c WHERE {condition} LIMIT {NARROW + 1}"  # noqa: S608
    numbers = [n for (n,) in connection.execute(passing, values)]
    if len(numbers) > NARROW:
        return []
    known = {hit.id for hit in found}
    rows = connection.execute(
        f"SELECT c.id, c.document, x.tokens FROM chunk c JOIN content x ON x.n = c.n WHERE c.n {_LISTED}",  # noqa: S608
        (json.dumps(numbers),),
    )
    last = found[-1].score if found else _NEXT_TO_NOTHING
    hits = []
    for chunk_id, document, blob in rows:
        if chunk_id in known:
            continue
        title, own, pairs, _ = unpack_tokens(blob)
        if held := len(terms.intersection((*title, *own))) + len(bigrams.intersection(pairs)):
            hits.append(IndexHit(chunk_id, document, last * held / (len(terms) + len(bigrams) + 1)))
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def dense_hits(
    connection: apsw.Connection, matrix: VectorMatrix, vector: bytes, where: ChunkFilter, limit: int
) -> list[IndexHit]:
    """Return the nearest by cosine. Raises InvalidConfiguration for a vector of another length than the index has."""

    def passing() -> Passing:
        _check_length(connection, vector)
        if _only_classes(where):
            return _numbers(connection, f"SELECT n FROM access_class WHERE id {_LISTED}", where.access_classes), None  # noqa: S608
        condition, values = _condition(where)
        return None, {n for (n,) in connection.execute(f"SELECT c.n FROM chunk c WHERE {condition}", values)}  # noqa: S608

    found = matrix.nearest(connection, vector, passing, limit)
    if found is None:
        _check_length(connection, vector)
        return _from_file(connection, vector, where, limit)
    scores = dict(found)
    rows = connection.execute(f"SELECT n, id, document FROM chunk WHERE n {_LISTED}", (json.dumps(list(scores)),))  # noqa: S608
    hits = [IndexHit(chunk_id, document, scores[n]) for n, chunk_id, document in rows]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]


def _numbers(connection: apsw.Connection, sql: str, names: tuple[str, ...] | None) -> set[int] | None:
    return None if names is None else {n for (n,) in connection.execute(sql, (json.dumps(names),))}


def _check_length(connection: apsw.Connection, vector: bytes) -> None:
    known = dimensions(connection)
    if known and known * 4 != len(vector):
        raise InvalidConfiguration(
            f"the question's vector has {len(vector) // 4} dimensions, the index {known}: "
            "run `shinsen replay` after a change of the embedding model"
        )


def _from_file(connection: apsw.Connection, vector: bytes, where: ChunkFilter, limit: int) -> list[IndexHit]:
    """Search with sqlite-vec. Distances are Euclidean: on unit vectors the same order, and faster."""
    if not dimensions(connection):
        return []
    k = min(limit + 1, MAX_K)
    while True:
        rows = _nearest(connection, vector, where, k)
        cut_within_tie = len(rows) == k and (k <= limit or rows[limit - 1][2] == rows[-1][2])
        if not cut_within_tie:
            return ranked(iter(rows), limit)
        if k == MAX_K:
            return ranked(_all_by_distance(connection, vector, where), limit)
        k = min(2 * k, MAX_K)


def _nearest(connection: apsw.Connection, vector: bytes, where: ChunkFilter, k: int) -> list[tuple[str, str, float]]:
    condition, values = _condition(where)
    if not condition:
        within = ""
    elif _only_classes(where):  # read beside the vectors: a third faster than a list of rows
        within = "AND " + _CLASS
    else:
        within = f"AND rowid IN (SELECT c.n FROM chunk c WHERE {condition})"  # noqa: S608
    sql = (
        "SELECT c.id, c.document, 1 - v.distance * v.distance / 2 FROM"  # noqa: S608
        f" (SELECT rowid, distance FROM vector WHERE embedding MATCH ? AND k = ? {within}) v"
        " JOIN chunk c ON c.n = v.rowid ORDER BY v.distance"
    )
    return list(connection.execute(sql, (vector, k, *values)))


def _all_by_distance(
    connection: apsw.Connection, vector: bytes, where: ChunkFilter
) -> Iterator[tuple[str, str, float]]:
    """Yield every chunk by distance: slow, for when thousands of equal vectors tie."""
    condition, values = _condition(where)
    sql = (
        "SELECT id, document, 1 - distance * distance / 2 FROM ("  # noqa: S608
        "SELECT c.id, c.document, vec_distance_l2(v.embedding, ?) AS distance"
        f" FROM vector v CROSS JOIN chunk c ON c.n = v.rowid {'WHERE ' + condition if condition else ''}"
        ") ORDER BY distance"
    )
    return iter(connection.execute(sql, (vector, *values)))


def documents_with_all(connection: apsw.Connection, bigrams: Sequence[str], limit: int) -> list[str]:
    """Return keys of documents with a chunk that holds all these bigrams, in key order."""
    rows = connection.execute(
        "SELECT DISTINCT c.document FROM lexical CROSS JOIN chunk c ON c.n = lexical.rowid"
        " WHERE lexical MATCH ? ORDER BY c.document LIMIT ?",
        (all_of("bigrams", bigrams), limit),
    )
    return [document for (document,) in rows]
