"""Which passages are shown as evidence: per document the one that answers best, and room for what the graph led to."""

import math
from collections.abc import Sequence

import msgspec

from api.answering.extract import Scored
from api.answering.sources import is_far, order
from api.retrieval.passages import Passage

_FAR_SHARE = 0.2
_SENTENCE = 0.5


class Shown(msgspec.Struct, frozen=True):
    """The evidence, and the scored sentences that stand in it."""

    passages: list[Passage]
    scored: list[Scored]


def focus(passages: Sequence[Passage], scored: Sequence[Scored]) -> Shown:
    """Keep of each document the passage that answers best, and let its best sentence count for it."""
    passages = _rescored(passages, scored)
    return _narrowed(passages, scored, _best_of_each(passages, scored))


def cut(shown: Shown, chosen: Sequence[Scored], top_k: int) -> tuple[Shown, list[Scored]]:
    """Keep at most `top_k` passages: the cited ones first; return the claims in their new places, too."""
    cited = list(dict.fromkeys(one.passage for one in chosen))[:top_k]
    rest = _with_far(shown.passages, [n for n in range(len(shown.passages)) if n not in cited], top_k - len(cited))
    kept = sorted([*cited, *rest], key=lambda n: order(shown.passages[n]))
    narrowed = _narrowed(shown.passages, shown.scored, kept)
    places = {old: new for new, old in enumerate(kept)}
    claims = [msgspec.structs.replace(one, passage=places[one.passage]) for one in chosen if one.passage in places]
    return narrowed, claims


def _narrowed(passages: Sequence[Passage], scored: Sequence[Scored], kept: Sequence[int]) -> Shown:
    places = {old: new for new, old in enumerate(kept)}
    inside = [msgspec.structs.replace(one, passage=places[one.passage]) for one in scored if one.passage in places]
    return Shown([passages[n] for n in kept], inside)


def _rescored(passages: Sequence[Passage], scored: Sequence[Scored]) -> list[Passage]:
    """Let the best sentence of a passage count for it."""
    best: dict[int, float] = {}
    for one in scored:
        best.setdefault(one.passage, min(1.0, one.score))
    return [
        msgspec.structs.replace(passage, score=round((1 - _SENTENCE) * passage.score + _SENTENCE * best.get(n, 0.0), 6))
        for n, passage in enumerate(passages)
    ]


def _best_of_each(passages: Sequence[Passage], scored: Sequence[Scored]) -> list[int]:
    """Return for each document the passage with its best sentence, else its best passage."""
    best: dict[str, int] = {}
    for one in scored:
        best.setdefault(passages[one.passage].document, one.passage)
    for n in sorted(range(len(passages)), key=lambda n: order(passages[n])):
        best.setdefault(passages[n].document, n)
    return list(best.values())


def _with_far(passages: Sequence[Passage], kept: Sequence[int], top_k: int) -> list[int]:
    """Order by score, but keep places for documents that only a strong path of several edges leads to."""
    ordered = sorted(kept, key=lambda n: order(passages[n]))
    far = [n for n in ordered if is_far(passages[n])][: math.ceil(top_k * _FAR_SHARE)]
    near = [n for n in ordered if n not in far][: top_k - len(far)]
    return sorted([*far, *near], key=lambda n: order(passages[n]))
