"""Selection: which scored sentences become claims."""

from collections.abc import Sequence

from api.answering.extract import Scored, Wanted
from api.answering.sources import STRONG_PATH, is_far
from api.retrieval.passages import Passage

MAX_CLAIMS = 8
"""Beside those for what only the graph led to."""
_FEW = 3
_RELATIVE_RECORD, _RELATIVE_VECTOR = 0.85, 0.75
_RELATIVE_GRAPH = 0.45
_LEAST_COVERAGE = 0.3
_LEAST_SUPPORT, _LEAST_SUPPORT_NAMED = 0.3, 0.2
_GRAPH_PLACES = 2
_PER_RECORD = 2


def select(
    scored: Sequence[Scored], passages: Sequence[Passage], wanted: Wanted, strategy: str, *, linked: bool
) -> list[Scored]:
    """Choose the sentences of the answer, in its order; none when the evidence is too weak.

    `linked` says whether an asked identifier is a known entity: only then does a path count as being about it.
    """
    about = [one for one in scored if _is_about(one, passages[one.passage], wanted, linked)]
    if not any(one.coverage >= _LEAST_COVERAGE or (one.named and one.cue > 0) for one in about):
        return []
    if strategy == "db":
        return _of_record(about, passages)
    if strategy == "vector":
        best = _best_per_document(about, passages)
        return [one for one in best if one.score >= best[0].score * _RELATIVE_VECTOR][:_FEW]
    return _of_graph(about, passages)


def _is_about(one: Scored, passage: Passage, wanted: Wanted, linked: bool) -> bool:
    """Say whether the sentence, its document, or its path has to do with the identifier that was asked about."""
    if not wanted.question.identifiers:
        return True
    if passage.foreign:
        return one.named
    return one.named or passage.candidate.exact > 0 or (linked and passage.strength >= STRONG_PATH)


def _best_per_document(scored: Sequence[Scored], passages: Sequence[Passage]) -> list[Scored]:
    best: dict[str, Scored] = {}
    for one in scored:
        best.setdefault(passages[one.passage].document, one)
    return list(best.values())


def _of_record(scored: Sequence[Scored], passages: Sequence[Passage]) -> list[Scored]:
    """Choose the best sentences of the best record, in reading order."""
    document = passages[scored[0].passage].document
    least = scored[0].score * _RELATIVE_RECORD
    own = [one for one in scored if passages[one.passage].document == document and one.score >= least]
    return sorted(own[:_PER_RECORD], key=lambda one: passages[one.passage].candidate.ref.start + one.sentence.start)


def _says_something(one: Scored) -> bool:
    """Say whether it holds more than the name: what is asked, or what the best sentence tells."""
    least = _LEAST_SUPPORT_NAMED if one.named else _LEAST_SUPPORT
    return one.coverage >= _LEAST_COVERAGE or one.support >= least or (one.named and one.cue >= 1)


def _of_graph(about: list[Scored], passages: Sequence[Passage]) -> list[Scored]:
    """Choose one sentence of each document, and keep places for those that only other things led to.

    The latter tell what applies to the thing, and need not repeat a word of the question.
    """
    far = _best_per_document([one for one in about if is_far(passages[one.passage])], passages)
    far.sort(key=lambda one: (-passages[one.passage].strength, -one.score, one.passage))
    places = far[:_GRAPH_PLACES]
    telling = [one for one in about if not is_far(passages[one.passage]) and _says_something(one)]
    best = _best_per_document(telling, passages)
    near = [one for one in best if one.support >= _LEAST_SUPPORT_NAMED or _strong(one, best[0])]
    return near[:MAX_CLAIMS] + places


def _strong(one: Scored, best: Scored) -> bool:
    return one.score >= _RELATIVE_GRAPH * best.score
