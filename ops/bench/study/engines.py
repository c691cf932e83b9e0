"""The engines that a file of configurations names: one retriever, or several fused.

```yaml
- name: A and dense, relative scores, dense .3
  engine: ops.bench.study.engines:fuse
  options: {lists: [A, dense], by: weights, weights: [.7, .3]}
```
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from ops.bench.study.candidates import Fused, fused
from ops.bench.study.learned import crossed_weights
from ops.bench.study.retrievers import Retriever, Vectors, Words, vectors
from ops.evaluation.formats import Place
from ops.evaluation.golden import GoldenQuestion, GoldenSet, Passage
from ops.evaluation.ranking import Ranker
from pipeline.errors import InvalidConfiguration

RRF_K = 60.0
COVERED = ((0.75, 0.25), (0.55, 0.4), (0.0, 0.5))
"""From this share of the question's IDF in BM25's first document on, this weight of the dense list."""

_built: dict[tuple[str, int], Retriever] = {}
"""By name and parameters, and the passages: configurations share what they have in common."""


class ListRanker:
    """Ranks by an order of passage numbers."""

    def __init__(self, keys: Sequence[str], order: Callable[[GoldenQuestion, list[Any]], list[int]]) -> None:
        self._keys, self._order = keys, order
        self.retrievers: list[Retriever] = []

    async def rank(self, question: GoldenQuestion) -> list[str]:
        """Return the documents' keys, best first."""
        lists = [await retriever.find(question.question) for retriever in self.retrievers]
        return [self._keys[at] for at in self._order(question, lists)]


@asynccontextmanager
async def fuse(golden: GoldenSet, options: dict[str, Any], place: Place) -> AsyncIterator[Ranker]:
    """One ranking of one or more retrievers.

    Args:
        golden: Its passages are ranked.
        options: `lists`: analyses (see `ops.bench.study.terms`) or `dense`; `k1`, `b` of BM25; `titles`: with
            the pages' titles as user dictionary; `by`: `first` (the only
            list), `ranks` (RRF), `weights` with `weights`, `coverage` (of two lists, the second one dense), `learned`.
        place: Where the passages live.
    """
    names, by = list(options.pop("lists")), options.pop("by", "first")
    weights = options.pop("weights", None)
    words = {"k1": options.pop("k1", 1.2), "b": options.pop("b", 0.75), "titles": options.pop("titles", False)}
    if options or (by == "first") != (len(names) == 1) or (by == "weights") != (weights is not None):
        raise InvalidConfiguration(f"the study's engine cannot do {names} by {by!r} with {sorted(options)}")
    retrievers = [await _retriever(name, golden.passages, words) for name in names]
    for retriever in retrievers:
        if isinstance(retriever, Vectors):
            await retriever.know([question.question for question in golden.questions])
    order = await _order(by, golden, retrievers, weights)
    ranker = ListRanker([place.key(each.id) for each in golden.passages], order)
    ranker.retrievers = retrievers
    yield ranker


async def _retriever(name: str, passages: Sequence[Passage], options: dict[str, Any]) -> Retriever:
    key = (name if name == "dense" else f"{name} {options}", hash(tuple(passages)))
    if key not in _built:
        _built[key] = await vectors(passages) if name == "dense" else Words(passages, name, **options)
    return _built[key]


async def _order(
    by: str, golden: GoldenSet, retrievers: Sequence[Retriever], weights: Sequence[float] | None
) -> Callable[[GoldenQuestion, list[Any]], list[int]]:
    if by == "first":
        return lambda _, lists: [int(at) for at in lists[0].documents]
    if by == "ranks":
        return lambda _, lists: fused(lists).by_ranks(RRF_K)
    if by == "weights" and weights is not None and len(weights) == len(retrievers):
        return lambda _, lists: fused(lists).by_weights(weights)
    if by == "coverage" and isinstance(words := retrievers[0], Words) and len(retrievers) == 2:
        return lambda question, lists: _covered(words, question, fused(lists), lists)
    if by == "learned":
        known = {each.id: fused([await r.find(each.question) for r in retrievers]) for each in golden.questions}
        learned = crossed_weights(golden, known)
        return lambda question, lists: fused(lists).by_weights(learned[question.id])
    raise InvalidConfiguration(f"the study's engine cannot fuse {len(retrievers)} lists by {by!r}")


def _covered(words: Words, question: GoldenQuestion, both: Fused, lists: list[Any]) -> list[int]:
    first = lists[0].documents[:1]
    share = words.index.coverage(words.terms(question.question), int(first[0])) if len(first) else 0.0
    dense = next(weight for least, weight in COVERED if share >= least)
    return both.by_weights(np.array([1 - dense, dense]).tolist())
