"""The vectors of a chunk index in memory, so that an exact search is one product of a matrix and a vector.

The file stays the truth. Rows that a committed transaction touched are noted here, and the next search
reads them again before it looks. Scores follow Faiss's flat index: inner products of unit vectors.
"""

import threading
from collections.abc import Callable, Iterable

import apsw
import numpy as np
import numpy.typing as npt

from pipeline.backends.chunks_sqlite_writes import dimensions

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Passing = tuple[set[int] | None, set[int] | None]
"""Numbers of access classes, numbers of rows: what a search may find; None does not filter."""

_MARGIN = 1e-4
"""A product of matrix and vector may differ by less than this from the sum over one row; candidates are summed anew."""


class VectorMatrix:
    """Row numbers, access classes and vectors. All methods may be called from any thread."""

    def __init__(self, most: int) -> None:
        """Take the number of vectors up to which they are held; beyond it the file is searched."""
        self._most = most
        self._lock = threading.Lock()
        self._touched: set[int] | None = None
        """Rows to read again; None before the first search."""
        self._slots: dict[int, int] = {}
        self._rows: Rows = np.empty(0, np.int64)
        self._classes: Rows = np.empty(0, np.int64)
        self._vectors: Floats = np.empty((0, 0), np.float32)

    def touch(self, rows: Iterable[int]) -> None:
        """Note rows whose transaction has committed."""
        with self._lock:
            if self._touched is not None:
                self._touched.update(rows)

    def nearest(
        self, connection: apsw.Connection, vector: bytes, passing: Callable[[], Passing], k: int
    ) -> list[tuple[int, float]] | None:
        """Return at least the best `k` (row, cosine) that pass, with all that tie with the last; None when too many.

        Must do the first reading of its transaction: what was touched by then is in its snapshot.
        """
        with self._lock:
            if not self._refresh(connection):
                return None
            size = len(self._slots)
            if not size:
                return []
            slots = self._passing(size, *passing())
            asked = np.frombuffer(vector, np.float32)
            if slots is None:
                return _best(self._vectors[:size], self._rows[:size], asked, k)
            return _best(self._vectors[slots], self._rows[slots], asked, k)

    def _passing(self, size: int, classes: set[int] | None, among: set[int] | None) -> Rows | None:
        """Return the slots that pass; None for all of them."""
        if among is not None:
            return np.fromiter(sorted(self._slots[n] for n in among & self._slots.keys()), np.int64)
        if classes is None:
            return None
        mask = np.isin(self._classes[:size], list(classes))
        return None if mask.all() else np.flatnonzero(mask)

    # ---------------------------------------------------------------- keeping up with the file

    def _refresh(self, connection: apsw.Connection) -> bool:
        if self._touched is None:
            return self._load(connection)
        touched, self._touched = self._touched, set()
        try:
            for n in touched if dimensions(connection) else ():
                row = connection.execute("SELECT class, embedding FROM vector WHERE rowid = ?", (n,)).fetchone()
                self._remove(n)
                if row is not None:
                    self._put(n, *row)
        except BaseException:
            self._touched = None  # read everything again rather than miss a row
            raise
        if len(self._slots) > self._most:
            self._touched = None
            self._clear()
            return False
        return True

    def _clear(self) -> None:
        self._slots = {}
        self._rows, self._classes = np.empty(0, np.int64), np.empty(0, np.int64)
        self._vectors = np.empty((0, 0), np.float32)

    def _load(self, connection: apsw.Connection) -> bool:
        # Row numbers start at 1, so this bounds how many there are, at no cost.
        if (connection.execute("SELECT max(n) FROM chunk").get or 0) > self._most:
            return False
        self._clear()
        if dimensions(connection):
            for n, access_class, embedding in connection.execute("SELECT rowid, class, embedding FROM vector"):
                self._put(n, access_class, embedding)
        self._touched = set()
        return True

    def _put(self, n: int, access_class: int, embedding: bytes) -> None:
        slot, length = len(self._slots), len(embedding) // 4
        if slot >= len(self._rows) or self._vectors.shape[1] != length:
            self._grow(max(1024, 2 * slot), length)
        self._slots[n] = slot
        self._rows[slot], self._classes[slot] = n, access_class
        self._vectors[slot] = np.frombuffer(embedding, np.float32)

    def _grow(self, size: int, length: int) -> None:
        used = len(self._slots)
        rows, classes, vectors = (
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty((size, length), np.float32),
        )
        rows[:used], classes[:used] = self._rows[:used], self._classes[:used]
        if used:
            vectors[:used] = self._vectors[:used]
        self._rows, self._classes, self._vectors = rows, classes, vectors

    def _remove(self, n: int) -> None:
        """Take a row out; the last one moves into its place."""
        slot = self._slots.pop(n, None)
        if slot is None:
            return
        last = len(self._slots)
        if slot != last:
            moved = int(self._rows[last])
            self._rows[slot], self._classes[slot] = moved, self._classes[last]
            self._vectors[slot] = self._vectors[last]
            self._slots[moved] = slot


def _best(vectors: Floats, rows: Rows, asked: Floats, k: int) -> list[tuple[int, float]]:
    # Not `@`: BLAS would start threads of its own, which wait for the lexical search's core (4.7 ms instead of 1.1).
    scores = np.einsum("ij,j->i", vectors, asked)
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero(scores >= least - _MARGIN)
        vectors, rows = vectors[kept], rows[kept]
    # Summed row by row: equal vectors score equally wherever they stand in the matrix, so that ties go by id.
    exact = np.round((vectors.astype(np.float64) * asked.astype(np.float64)).sum(axis=1), 9)
    return [(int(row), float(score)) for row, score in zip(rows, exact, strict=True)]
