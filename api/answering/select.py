"""Selection: which scored sentences become claims."""

from collections.abc import Sequence

from api.answering.extract import Scored, Wanted
from api.answering.sources import is_far
from api.retrieval.passages import Passage

MAX_CLAIMS = 8
_FEW = 3
_RELATIVE = {"db": 0.85, "vector": 0.75}
_RELATIVE_GRAPH = 0.45
_LEAST_COVERAGE = 0.3
_GRAPH_PLACES = 2
_PER_RECORD = 2


def select(
    scored: Sequence[Scored], passages: Sequence[Passage], wanted: Wanted, strategy: str, *, linked: bool
) -> list[Scored]:
    """Choose the sentences of the answer, in its order; none when the evidence is too weak.

    `linked` says whether an asked identifier is a known entity: only then does a path count as being about it.
    """
    about = [one for one in scored if _is_about(one, passages[one.passage], wanted, linked)]
    if not about or max(one.coverage for one in about) < _LEAST_COVERAGE:
        return []
    if strategy == "db":
        return _of_record(about, passages)
    best = _best_per_document(about, passages)
    least = best[0].score * _RELATIVE.get(strategy, _RELATIVE_GRAPH)
    good = [one for one in best if one.score >= least]
    return good[:_FEW] if strategy == "vector" else _with_graph(good, best, passages)


def _is_about(one: Scored, passage: Passage, wanted: Wanted, linked: bool) -> bool:
    """Say whether the sentence, its document, or its path has to do with the identifier that was asked about."""
    if not wanted.question.identifiers:
        return True
    return one.named or passage.candidate.exact > 0 or (linked and bool(passage.path))


def _best_per_document(scored: Sequence[Scored], passages: Sequence[Passage]) -> list[Scored]:
    best: dict[str, Scored] = {}
    for one in scored:
        best.setdefault(passages[one.passage].document, one)
    return list(best.values())


def _of_record(scored: Sequence[Scored], passages: Sequence[Passage]) -> list[Scored]:
    """Choose the best sentences of the best record, in reading order."""
    document = passages[scored[0].passage].document
    least = scored[0].score * _RELATIVE["db"]
    own = [one for one in scored if passages[one.passage].document == document and one.score >= least]
    return sorted(own[:_PER_RECORD], key=lambda one: passages[one.passage].candidate.ref.start + one.sentence.start)


def _with_graph(good: list[Scored], best: list[Scored], passages: Sequence[Passage]) -> list[Scored]:
    """Keep places for documents that only the graph led to: what applies to the thing, not what names it."""
    far = [one for one in best if is_far(passages[one.passage])]
    far.sort(key=lambda one: (-passages[one.passage].strength, -one.score, one.passage))
    places = far[:_GRAPH_PLACES]
    direct = [one for one in good if not is_far(passages[one.passage])]
    return direct[: MAX_CLAIMS - len(places)] + places
