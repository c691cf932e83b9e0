"""Routing by rules: the same question always goes the same way, and the reason can be read."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from api.retrieval.entities import LinkedEntity
from api.routing.words import Focus, RoutingWords
from pipeline.text.normalize import fold
from schemas.query import Source

Strategy = Literal["db", "vector", "graph", "all"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Where a question goes."""

    strategy: Strategy
    by: Literal["rule", "override"]
    confidence: float
    reason: str
    focus: Focus | None = None


def decide(text: str, entities: Sequence[LinkedEntity], source: Source, words: RoutingWords) -> Decision:
    """Choose a source by the words of the question and by whether it names something known."""
    folded = fold(text)[0].strip()
    focus = words.focus(folded)
    if source in ("db", "vector", "graph", "all"):
        reason = f"the request asks for source={source}"
        return Decision(strategy=source, by="override", confidence=1.0, reason=reason, focus=focus)
    strategy, confidence, reason = _by_rule(folded, entities, words)
    return Decision(strategy=strategy, by="rule", confidence=confidence, reason=reason, focus=focus)


def _by_rule(folded: str, entities: Sequence[LinkedEntity], words: RoutingWords) -> tuple[Strategy, float, str]:
    """Relations before look-ups: 「F-17の事故原因」 is short, too."""
    names = "、".join(entity.label for entity in entities[:3])
    if cue := words.relation.found(folded):
        if entities:
            return "graph", 0.9, f"relation word 「{cue}」 and known entity {names}"
        return "graph", 0.6, f"relation word 「{cue}」; no known entity, so the walk starts at the best documents"
    cue = words.lookup.found(folded)
    if entities and len(folded) <= words.longest_lookup and cue:
        return "db", 0.85, f"short question for a property (「{cue}」) of known entity {names}"
    if entities:
        return "vector", 0.6, f"names {names}, but asks neither for a relation nor for a property"
    return "vector", 0.5, "no rule matched; the texts are searched"
