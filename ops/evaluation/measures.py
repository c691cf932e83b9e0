"""Measures of a ranking, computed by trec_eval through ir-measures (MacAvaney et al., ECIR 2022).

`nDCG@k` takes 2^grade − 1 as gain and log2(rank + 1) as discount (Burges et al., ICML 2005; Järvelin and Kekäläinen,
TOIS 2002). For the others a document counts as relevant from grade `relevant_from` on: `recall@k`, `P@k`, `MRR`
(Voorhees, TREC-8) and `MAP` (both over the whole ranking that was asked for).
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ops.evaluation.golden import HIGHEST_GRADE, GoldenQuestion
from pipeline.errors import InvalidConfiguration

_WRITTEN = re.compile(r"(ndcg|recall|r|p|mrr|rr|map|ap)(?:@([1-9]\d{0,3}))?")
_NAMES = {
    "ndcg": "nDCG",
    "recall": "recall",
    "r": "recall",
    "p": "P",
    "mrr": "MRR",
    "rr": "MRR",
    "map": "MAP",
    "ap": "MAP",
}
_WITH_CUT = {"nDCG", "recall", "P"}

Table = NDArray[np.float64]
"""Values by question (rows) and measure (columns), each 0..1."""


class Measure(msgspec.Struct, frozen=True):
    """What is measured, with its cut where it has one."""

    name: str
    cut: int = 0

    def __str__(self) -> str:
        return f"{self.name}@{self.cut}" if self.cut else self.name


MAIN = Measure("nDCG", 10)
DEFAULT = (MAIN, Measure("MRR"), Measure("MAP"), Measure("P", 1), Measure("recall", 5), Measure("recall", 10))


def measure(text: str) -> Measure:
    """Read `ndcg@10`, `recall@5`, `P@1`, `MRR`, `MAP`, in any case. Raises InvalidConfiguration."""
    found = _WRITTEN.fullmatch(text.strip().lower())
    name = _NAMES[found[1]] if found else ""
    cut = int(found[2] or 0) if found else 0
    if not found or (name in _WITH_CUT) != bool(cut):
        raise InvalidConfiguration(f"{text!r} is no measure: nDCG@k, recall@k, P@k, MRR, MAP")
    return Measure(name, cut)


def measured(
    questions: Sequence[GoldenQuestion],
    rankings: Sequence[Sequence[str]],
    measures: Sequence[Measure],
    relevant_from: int = 1,
) -> Table:
    """Return the value of each measure for each question.

    A question without a document of grade `relevant_from` or more has 0 in the measures that count those.
    """
    import ir_measures

    wanted = {_library(m, relevant_from): column for column, m in enumerate(measures)}
    # Numbers as ids: trec_eval knows strings of bytes only, and ours may hold anything.
    qrels = {str(row): dict(q.relevant) for row, q in enumerate(questions)}
    run = {str(row): {key: -float(rank) for rank, key in enumerate(keys)} for row, keys in enumerate(rankings)}
    table = np.zeros((len(questions), len(measures)))
    for value in ir_measures.iter_calc(list(wanted), qrels, {row: found for row, found in run.items() if found}):
        table[int(value.query_id), wanted[value.measure]] = value.value
    return table


def _library(measure: Measure, relevant_from: int) -> Any:
    import ir_measures as library

    if measure.name == "nDCG":
        return library.nDCG(gains={grade: (1 << grade) - 1 for grade in range(HIGHEST_GRADE + 1)}) @ measure.cut
    named = {"recall": library.R, "P": library.P, "MRR": library.RR, "MAP": library.AP}[measure.name]
    chosen = named(rel=relevant_from)
    return chosen @ measure.cut if measure.cut else chosen
