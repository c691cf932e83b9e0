"""Vectors of single sentences, a byte a number: what a passage's one vector averages away.

The best sentence of a passage speaks for it beside the passage as a whole ("MaxP" over sentences; Dai and Callan 2019,
"Deeper Text Understanding for IR", score passages of a document so).
"""

from collections.abc import Sequence

import numpy as np

MOST_SENTENCES = 16
"""Of a passage: what follows is in the passage's own vector alone."""


def packed(vector: bytes) -> bytes:
    """Return a vector of little-endian float32 as int8, scaled to its largest number: its direction is what is kept."""
    numbers = np.frombuffer(vector, "<f4")
    return np.rint(numbers * (127 / (np.abs(numbers).max(initial=0) or 1.0))).astype(np.int8).tobytes()


def nearest(question: bytes, passages: Sequence[bytes]) -> list[float | None]:
    """Return for each passage the cosine between the question and the nearest of its sentences; None without any.

    `question`: a unit vector of float32. `passages`: packed vectors, one behind the other.
    """
    asked = np.frombuffer(question, "<f4")
    length = len(asked)
    found: list[float | None] = [None] * len(passages)
    there = [n for n, rows in enumerate(passages) if rows and not len(rows) % length]
    if not there:
        return found
    rows = np.frombuffer(b"".join(passages[n] for n in there), np.int8).reshape(-1, length).astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    cosines = np.einsum("ij,j->i", rows, asked) / np.maximum(norms, 1.0)
    starts = np.cumsum([0, *(len(passages[n]) // length for n in there[:-1])])
    for n, best in zip(there, np.round(np.maximum.reduceat(cosines, starts), 6).tolist(), strict=True):
        found[n] = best
    return found
