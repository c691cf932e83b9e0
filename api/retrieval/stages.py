"""A search in two stages: hybrid search, then the reranker over the best of it, then the page that was asked for."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from api.retrieval.blending import blend
from api.retrieval.guarded import guarded_search
from api.retrieval.passages import Passage, read_passages
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.reranking import RERANKED, SecondStage, asked, rerank, seen, with_sentences
from api.retrieval.search import CHUNKS_LOOKED_AT, Candidate, SearchPlan, thinned

_TRIES = 3
"""Searches while documents change under them."""


async def searched(
    reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, offset: int = 0
) -> tuple[list[Candidate], list[Passage]]:
    """Search; return all that was found, and `wanted` passages less `offset`. Searches again where one was removed
    before its text was read: its document has changed, and is found at its new version."""
    stage, further = _second_stage(reader, plan), reader.runtime.further
    wide = msgspec.structs.replace(plan, looked_at=CHUNKS_LOOKED_AT) if stage else plan
    for _ in range(_TRIES):
        head, rest = _parted(await guarded_search(reader, question, wide), plan.per_document)
        thin = thinned(head, plan.per_document)
        places = len(thin)
        ordered = bool(stage or further) and offset < places  # else the page lies behind what is ordered anew
        if ordered:
            looked_at = [*head, *rest[: max(plan.wanted - places, 0)]]
        else:
            head = thin
            looked_at = [*head, *rest][offset : plan.wanted]
        passages = await read_passages(reader, looked_at, "vector")
        if len(passages) == len(looked_at) or reader.chunks_away:
            break
    found = [*head, *rest]
    if stage and ordered:
        found, passages = await _reranked(reader, stage, reader.rest or question, found, passages)
    if further and ordered:  # after the reranker: it knows nothing of these lists, and would undo what they say
        found, passages = await _blended(reader, question, found, passages)
    if ordered:
        found = [*thinned(found[: len(head)], plan.per_document), *rest]
    by_id = {passage.candidate.id: passage for passage in passages}
    return found, [by_id[one.id] for one in found[offset : plan.wanted] if one.id in by_id]


def _parted(found: Sequence[Candidate], per_document: int) -> tuple[list[Candidate], list[Candidate]]:
    """Return what is ordered anew, and of the rest what will not be too much of a document, however that is ordered."""
    head = list(found[:RERANKED])
    seen = Counter(one.document for one in head)
    rest = []
    for one in found[RERANKED:]:
        seen[one.document] += 1
        if seen[one.document] <= per_document:
            rest.append(one)
    return head, rest


def _second_stage(reader: Reader, plan: SearchPlan) -> SecondStage | None:
    """Return the second stage, unless nobody wants it."""
    runtime = reader.runtime
    if runtime.reranker is None or not plan.rerank:
        return None
    return SecondStage(reranker=runtime.reranker, budget_s=runtime.rerank_budget_s, alpha=plan.alpha)


async def _reranked(
    reader: Reader,
    stage: SecondStage,
    question: AnalyzedQuestion,
    found: list[Candidate],
    passages: list[Passage],
) -> tuple[list[Candidate], list[Passage]]:
    """Rerank the head."""
    head = await with_sentences(question, _head(found, passages))
    reader.explained = lambda: (asked(question, stage.alpha), {one.candidate.id: seen(one) for one in head})
    done = await rerank(stage, question, head)
    reader.rerank_s = done.seconds
    if done.note:
        reader.notes.append(done.note)
    return _joined(done.passages, found, passages)


async def _blended(
    reader: Reader, question: AnalyzedQuestion, found: list[Candidate], passages: list[Passage]
) -> tuple[list[Candidate], list[Passage]]:
    """Weigh further lists in, over the head."""
    runtime = reader.runtime
    done = await blend(runtime.further, runtime.further_budget_s, question.text, _head(found, passages))
    reader.notes += done.notes
    return _joined(done.passages, found, passages)


def _head(found: list[Candidate], passages: list[Passage]) -> list[Passage]:
    """Return the passages of the first candidates; after `_joined` in their new order."""
    heads = {candidate.id for candidate in found[:RERANKED]}
    return [passage for passage in passages if passage.candidate.id in heads]


def _joined(
    ordered: list[Passage], found: list[Candidate], passages: list[Passage]
) -> tuple[list[Candidate], list[Passage]]:
    """Put the ordered head before the rest; candidates without a text stand behind it, too."""
    known = {passage.candidate.id for passage in ordered}
    return (
        [passage.candidate for passage in ordered] + [one for one in found if one.id not in known],
        ordered + [passage for passage in passages if passage.candidate.id not in known],
    )
