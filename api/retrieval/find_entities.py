"""Finding entities by a part of their name, and by a whole one."""

import msgspec

from api.retrieval.entities import FAMILIES
from api.retrieval.labels import Labels, entity_id, node_key, parse_entity_id
from api.retrieval.reader import Reader
from pipeline.steps.iris import node_iri
from pipeline.steps.name_index import NameIndex
from pipeline.text.normalize import fold, name_key
from schemas.knowledge import ALIAS, LABEL, EntityRef, Fact, LiteralValue

_FACTS = 2_000
_OVERFETCH = 4


class FoundEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity, with the name by which it was found."""

    id: str
    iri: str
    label: str
    type: str
    name: str


async def find_entities(reader: Reader, text: str, limit: int) -> list[FoundEntity]:
    """Return entities with a live, permitted name that holds `text`."""
    found = await reader.indexes.graph.find_entities(text, reader.classes, limit * _OVERFETCH)
    refs = list({node_key(node): node for node, _ in found if isinstance(node, EntityRef)}.values())
    facts = await reader.facts_about(refs, _FACTS)
    labels = Labels()
    labels.learn(facts)
    names = _names(facts, fold(text)[0])
    entities = [
        FoundEntity(
            id=entity_id(ref),
            iri=node_iri(ref),
            label=labels.of(ref),
            type=labels.type_of(ref),
            name=min(names[node_key(ref)], key=lambda name: (len(name), name)),
        )
        for ref in refs
        if node_key(ref) in names
    ]
    return sorted(entities, key=lambda e: (len(e.name), e.name, e.id))[:limit]


def _names(facts: list[Fact], wanted: str) -> dict[tuple[str, str], set[str]]:
    """Return the names that hold the text, by entity, out of live facts only."""
    names: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        named = fact.predicate in (LABEL, ALIAS) and isinstance(fact.object, LiteralValue)
        if named and isinstance(fact.object, LiteralValue) and wanted in fold(fact.object.value)[0]:
            names.setdefault(node_key(fact.subject), set()).add(fact.object.value)
    return names


async def resolve_entity(reader: Reader, names: NameIndex, text: str) -> EntityRef | None:
    """Return the entity of an id or of a whole name, if the asker may know of it."""
    given, key = parse_entity_id(text), name_key(text)
    declared = [ref for match in names.find(text) for ref in match.entities if ref.key == key]
    guesses = [EntityRef(family, key, text) for family in ("id", *FAMILIES)] if key else []
    candidates = [*([given] if given else []), *declared, *guesses]
    facts = await reader.facts_about(candidates, _FACTS)
    told = {node_key(end) for fact in facts for end in (fact.subject, fact.object) if isinstance(end, EntityRef)}
    return next((ref for ref in candidates if node_key(ref) in told), None)
