"""Saved questions asked of two generations: how far their best documents agree."""

from collections.abc import Sequence

import msgspec

from api.retrieval.access import Asker
from api.retrieval.filters import Where
from api.retrieval.question import AnalyzedQuestion, analyze_question
from api.retrieval.reader import Reader
from api.retrieval.search import SearchPlan, search
from pipeline.ports.generations import Indexes
from pipeline.ports.runtime import Runtime

CUT = 10
OVERFETCH = 50
"""Hits are passages; the first ten documents are wanted."""
SHOWN = 20


class RankingChange(msgspec.Struct, frozen=True, kw_only=True):
    """A question whose best documents differ."""

    question: str
    overlap: float
    """Share of the first ten documents that both have."""
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]


class Rankings(msgspec.Struct, frozen=True, kw_only=True):
    """How the saved questions went."""

    questions: int
    overlap: float
    """Mean share of the first ten documents that both have; 1 without questions."""
    same_first: float
    """Share of questions with the same document on top."""
    changed: tuple[RankingChange, ...]
    """Those that differ most, at most twenty."""
    notes: tuple[str, ...] = ()


async def compare_rankings(
    runtime: Runtime, asker: Asker, pair: tuple[Indexes, Indexes], questions: Sequence[str]
) -> Rankings:
    """Ask both. A generation whose vectors are of another model than runs here is asked by words only."""
    models = {g.name: g.versions.get("embedder", "") for g in await runtime.state.generations()}
    blind = {i.generation for i in pair if models.get(i.generation) != runtime.embedder.model}
    readers = [Reader(runtime, indexes, asker, None) for indexes in pair]
    changes: list[RankingChange] = []
    same_first, overlaps = 0, 0.0
    for text in questions:
        question = await analyze_question(runtime, text)
        one, other = [await _best(reader, question, reader.generation in blind) for reader in readers]
        overlap = len(set(one) & set(other)) / max(len(one), len(other)) if one or other else 1.0
        overlaps, same_first = overlaps + overlap, same_first + (one[:1] == other[:1])
        if one != other:
            only = (tuple(d for d in one if d not in other), tuple(d for d in other if d not in one))
            changes.append(RankingChange(question=text, overlap=overlap, only_first=only[0], only_second=only[1]))
    number = len(questions)
    return Rankings(
        questions=number,
        overlap=round(overlaps / number, 4) if number else 1.0,
        same_first=round(same_first / number, 4) if number else 1.0,
        changed=tuple(sorted(changes, key=lambda change: change.overlap)[:SHOWN]),
        notes=tuple(
            f"{name} has vectors of {models.get(name) or 'no model'}, this process runs "
            f"{runtime.embedder.model or 'none'}: asked by words only"
            for name in sorted(blind)
        ),
    )


async def _best(reader: Reader, question: AnalyzedQuestion, blind: bool) -> list[str]:
    asked = msgspec.structs.replace(question, vector=None) if blind else question
    plan = SearchPlan(where=Where(), wanted=OVERFETCH)
    found = await search(reader, asked, plan)
    return list(dict.fromkeys(candidate.document for candidate in found))[:CUT]
