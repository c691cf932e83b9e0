"""Entities that a question names: identifiers, names that records declare, and words that are entities themselves."""

import re
from collections.abc import Sequence

import msgspec

from api.retrieval.labels import Labels, NodeKey, entity_id, node_key
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from pipeline.steps.name_index import NameIndex
from pipeline.text.normalize import fold, name_key
from schemas.knowledge import SAME_AS, EntityRef, Fact

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
    tied: bool = False
    """True when the question names it only through a `same_as`: by an alias."""

    @property
    def id(self) -> str:
        """Its id in the API."""
        return entity_id(self.ref)


async def link_entities(reader: Reader, question: AnalyzedQuestion, names: NameIndex) -> list[LinkedEntity]:
    """Return the entities of the question of which some live, permitted fact tells, and what they are the same as.

    Whether an alias leads to its thing is a fact like others: who may not read the record that declares
    it does not see the tie.
    """
    named = _named(question, names)
    facts = await reader.facts_about(list(named.values()), _FACTS)
    told = {node_key(end) for fact in facts for end in (fact.subject, fact.object) if isinstance(end, EntityRef)}
    known = {key: ref for key, ref in named.items() if key in told}
    tied = _tied(known, facts)
    labels = Labels()
    labels.learn(facts)
    labels.learn(await reader.facts_about(list(tied.values()), _FACTS))
    found = [LinkedEntity(ref, labels.of(ref), labels.type_of(ref)) for ref in known.values()]
    found += [LinkedEntity(ref, labels.of(ref), labels.type_of(ref), tied=True) for ref in tied.values()]
    return found[:_MOST_ENTITIES]


def _named(question: AnalyzedQuestion, names: NameIndex) -> dict[NodeKey, EntityRef]:
    """Return what may be meant: identifiers, declared names, then other words under every family."""
    refs = [EntityRef(m.family, m.key, m.surface) for m in question.analysis.mentions]
    folded = fold(question.text)[0]
    matches = names.find_folded(folded)
    refs += [ref for match in matches for ref in match.entities]
    rest = "".join(" " if any(m.start <= n < m.end for m in matches) else char for n, char in enumerate(folded))
    words = list(dict.fromkeys(name_key(word) for word in _WORDS.findall(rest)))[:_MOST_WORDS]
    refs += [EntityRef(family, word, word) for word in words for family in FAMILIES]
    unique: dict[NodeKey, EntityRef] = {}
    for ref in refs:
        unique.setdefault(node_key(ref), ref)
    return unique


def _tied(known: dict[NodeKey, EntityRef], facts: Sequence[Fact]) -> dict[NodeKey, EntityRef]:
    """Return what the named entities are the same as."""
    tied: dict[NodeKey, EntityRef] = {}
    for fact in facts:
        ends = (fact.subject, fact.object)
        if fact.predicate == SAME_AS and any(isinstance(end, EntityRef) and node_key(end) in known for end in ends):
            others = [end for end in ends if isinstance(end, EntityRef) and node_key(end) not in known]
            tied.update({node_key(other): other for other in others})
    return tied
