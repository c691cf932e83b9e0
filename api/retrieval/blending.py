"""Further lists over the best of a search: learned sparse, late interaction, each by its configured weight.

Nothing is lost, and a list whose model fails or is late is left out with a note.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import msgspec

from api.retrieval.passages import Passage, moved
from pipeline.errors import BackendUnavailable, ModelFailed
from pipeline.further_lists import UNMEASURED
from pipeline.ports.further_list import FurtherList
from pipeline.text.embeddable import passage_text


class Blended(msgspec.Struct, frozen=True, kw_only=True):
    """All passages that were given, in their new order."""

    passages: list[Passage]
    notes: list[str] = []


async def blend(lists: Sequence[FurtherList], budget_s: float, question: str, passages: Sequence[Passage]) -> Blended:
    """Return the passages by the weighted sum of relative scores; exact identifiers first, ties in the order given.

    Each list is scaled to 0..1 over these passages, like the lists that were fused before; those share the weight that
    the further ones leave. As after reranking, the places keep the first stage's scores.
    """
    texts = [passage_text(one.candidate.manifest.title, one.headings, one.text) for one in passages]
    answers = await asyncio.gather(*(_scores(one, budget_s, question, texts) for one in lists))
    scored = [(one, found) for one, found in zip(lists, answers, strict=True) if not isinstance(found, str)]
    rest = 1 - sum(one.weight for one, _ in scored)
    total = [rest * score for score in _relative([passage.candidate.score for passage in passages])]
    for one, found in scored:
        total = [before + one.weight * score for before, score in zip(total, _relative(found), strict=True)]
    order = sorted(range(len(passages)), key=lambda n: (-passages[n].candidate.exact, -round(total[n], 9), n))
    told = [{one.name: found[n] for one, found in scored} for n in range(len(passages))]
    return Blended(
        passages=[moved(passages[n], passages[place], lists=told[n]) for place, n in enumerate(order)],
        notes=[found for found in answers if isinstance(found, str)],
    )


def lists_info(lists: Sequence[FurtherList]) -> list[dict[str, Any]]:
    """Return what an explanation says of these lists."""
    return [{"name": one.name, "model": one.scorer.model, "weight": one.weight, "note": UNMEASURED} for one in lists]


async def _scores(one: FurtherList, budget_s: float, question: str, texts: Sequence[str]) -> list[float] | str:
    """Return the list's scores, or why there are none."""
    try:
        async with asyncio.timeout(budget_s):
            found = await one.scorer.scores(question, texts, budget_s=budget_s)
        if len(found) != len(texts) or not all(math.isfinite(score) for score in found):
            raise ModelFailed(f"{len(found)} scores for {len(texts)} passages, or one that is no number")
    except TimeoutError:
        return f"the list {one.name} was not there within {budget_s:g} s and was left out"
    except BackendUnavailable as error:
        return f"the list {one.name} was left out: {error}"
    return found


def _relative(scores: Sequence[float]) -> list[float]:
    top, bottom = max(scores, default=0.0), min(scores, default=0.0)
    return [(score - bottom) / (top - bottom) if top > bottom else 1.0 for score in scores]
