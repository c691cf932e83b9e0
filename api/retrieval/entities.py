"""Entities that a question names: identifiers, names that records declare, and words that are entities themselves."""

import re
from collections.abc import Sequence

import msgspec

from api.retrieval.labels import Labels, NodeKey, entity_id, node_key
from api.retrieval.names import NameTable
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from pipeline.ports.state import DeclaredName
from pipeline.text.normalize import name_key
from schemas.knowledge import ALIAS, LABEL, EntityRef, Fact, LiteralValue

FAMILIES = ("concept", "person", "organization", "place", "equipment", "item", "event", "document")
"""Families under which a plain word is looked for."""
_FACTS = 1_000
_MOST_ENTITIES = 8
_MOST_WORDS = 12
_WORDS = re.compile(r"[ァ-ヺー]{3,}|[一-鿿々ァ-ヺー]{2,}")


class LinkedEntity(msgspec.Struct, frozen=True):
    """An entity that the question names and that the asker may know of."""

    ref: EntityRef
    label: str
    type: str

    @property
    def id(self) -> str:
        """Its id in the API."""
        return entity_id(self.ref)


async def link_entities(reader: Reader, question: AnalyzedQuestion, names: NameTable) -> list[LinkedEntity]:
    """Return the entities of the question that some live, permitted fact tells of: identifiers, names, plain words."""
    folded = name_key(question.text)
    typed = _typed(question, folded)
    declared = [(folded[start:end], one) for start, end, ones in names.matches(folded) for one in ones]
    candidates = {node_key(ref): ref for ref in reversed([*typed, *_declared(declared)])}
    facts = await reader.facts_about(list(candidates.values()), _FACTS)
    labels = Labels()
    labels.learn(facts)
    told = {node_key(node) for fact in facts for node in (fact.subject, fact.object) if isinstance(node, EntityRef)}
    allowed = {node_key(ref) for ref in typed} | await _permitted(reader, declared, facts)
    return [
        LinkedEntity(ref, labels.of(ref), labels.type_of(ref))
        for key, ref in reversed(candidates.items())
        if key in told and key in allowed
    ][:_MOST_ENTITIES]


def _typed(question: AnalyzedQuestion, folded: str) -> list[EntityRef]:
    """Return what the asker wrote: identifiers, and words that may be entities of any family."""
    identifiers = [EntityRef(m.family, m.key, m.surface) for m in question.analysis.mentions]
    words = list(dict.fromkeys(_WORDS.findall(folded)))[:_MOST_WORDS]
    return identifiers + [EntityRef(family, word, word) for word in words for family in FAMILIES]


def _declared(declared: Sequence[tuple[str, DeclaredName]]) -> list[EntityRef]:
    return [EntityRef(one.family, one.key, name) for name, one in declared]


async def _permitted(
    reader: Reader, declared: Sequence[tuple[str, DeclaredName]], facts: Sequence[Fact]
) -> set[NodeKey]:
    """Return the entities whose name in the question is told by a document that the asker may read."""
    visible = await reader.manifests(one.document for _, one in declared)
    told = {
        (node_key(fact.subject), name_key(fact.object.value))
        for fact in facts
        if fact.predicate in (LABEL, ALIAS) and isinstance(fact.object, LiteralValue)
    }
    return {
        (one.family, one.key)
        for name, one in declared
        if one.document in visible or ((one.family, one.key), name) in told
    }
