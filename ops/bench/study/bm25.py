"""BM25 (Robertson and Zaragoza, 2009) over analysed terms, in memory: plain enough to check by hand."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


class Bm25:
    """An index of documents as lists of terms; one field."""

    def __init__(self, documents: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        """`k1` is how soon repetition stops counting, `b` how much long documents lose; as Lucene's defaults."""
        self.documents = len(documents)
        lengths = np.array([len(document) for document in documents], float)
        norms = k1 * (1 - b + b * lengths / max(lengths.mean(), 1.0)) if self.documents else lengths
        places: dict[str, list[int]] = {}
        counts: dict[str, list[int]] = {}
        for number, document in enumerate(documents):
            for term, count in Counter(document).items():
                places.setdefault(term, []).append(number)
                counts.setdefault(term, []).append(count)
        self._postings: dict[str, tuple[NDArray[np.int32], Scores]] = {}
        for term, found in places.items():
            at, often = np.array(found, np.int32), np.array(counts[term], float)
            self._postings[term] = at, self.idf(len(found)) * often * (k1 + 1) / (often + norms[at])

    def idf(self, holding: int) -> float:
        """Return the weight of a term that `holding` documents hold; above 0 for all (Lucene's variant)."""
        return math.log1p((self.documents - holding + 0.5) / (holding + 0.5))

    def scores(self, terms: Sequence[str]) -> Scores:
        """Return each document's score; a term counts once however often the question has it."""
        total = np.zeros(self.documents)
        for term in dict.fromkeys(terms):
            if term in self._postings:
                at, impact = self._postings[term]
                total[at] += impact
        return total

    def coverage(self, terms: Sequence[str], document: int) -> float:
        """Return the share of the question's IDF whose terms a document holds, 0..1; unknown terms count in full."""
        held = asked = 0.0
        for term in dict.fromkeys(terms):
            at = self._postings[term][0] if term in self._postings else np.empty(0, np.int32)
            idf = self.idf(len(at))
            asked += idf
            place = int(np.searchsorted(at, document))
            held += idf if place < len(at) and at[place] == document else 0.0
        return held / asked if asked else 0.0
