"""Selection: which scored sentences become claims."""

from collections.abc import Sequence

import msgspec

from api.answering.extract import Scored
from api.retrieval.passages import Passage
from api.retrieval.question import AnalyzedQuestion

MAX_CLAIMS = 8
_FEW = 3
_RELATIVE = {"db": 0.85, "vector": 0.75}
_RELATIVE_GRAPH = 0.4
_LEAST_COVERAGE = 0.3
_GRAPH_PLACES = 2
_PER_RECORD = 2


class Selection(msgspec.Struct, frozen=True):
    """The sentences chosen, in the order of the answer; empty when the evidence is too weak."""

    chosen: list[Scored]
    reason: str = ""


def select(
    scored: Sequence[Scored], passages: Sequence[Passage], question: AnalyzedQuestion, strategy: str
) -> Selection:
    """Choose the best sentence of each document, as many as the kind of question asks for."""
    if not scored:
        return Selection([], "no passage was found")
    if question.identifiers and not any(_about(one, passages, question) for one in scored):
        return Selection([], "no passage tells of " + "、".join(question.identifiers))
    if max(one.coverage for one in scored) < _LEAST_COVERAGE:
        return Selection([], "no sentence holds enough of the question's words")
    if strategy == "db":
        return Selection(_of_record(scored, passages))
    best = _best_per_document(scored, passages)
    least = best[0].score * _RELATIVE.get(strategy, _RELATIVE_GRAPH)
    good = [one for one in best if one.score >= least and _relevant(one, passages, question)]
    if strategy == "vector":
        return Selection(good[:_FEW])
    return Selection(_with_graph(good, best, passages))


def _about(one: Scored, passages: Sequence[Passage], question: AnalyzedQuestion) -> bool:
    """Say whether the sentence, its document, or its path has to do with what was named."""
    return one.named or passages[one.passage].candidate.exact > 0 or bool(passages[one.passage].path)


def _relevant(one: Scored, passages: Sequence[Passage], question: AnalyzedQuestion) -> bool:
    return not question.identifiers or _about(one, passages, question)


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
    led = [one for one in best if passages[one.passage].sources == ("graph",)]
    led.sort(key=lambda one: (-passages[one.passage].score, one.passage))
    places = led[:_GRAPH_PLACES]
    direct = [one for one in good if one not in places]
    return direct[: MAX_CLAIMS - len(places)] + places
