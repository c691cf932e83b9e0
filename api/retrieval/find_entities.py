"""Finding entities by a part of their name, and by a whole one."""

import msgspec

from api.retrieval.entities import FAMILIES
from api.retrieval.labels import Labels, entity_id, node_key, parse_entity_id
from api.retrieval.names import NameTable
from api.retrieval.reader import Reader
from pipeline.steps.iris import node_iri
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


async def resolve_entity(reader: Reader, table: NameTable, text: str) -> EntityRef | None:
    """Return the entity of an id or of a whole name, if the asker may know of it."""
    key = name_key(text)
    given = parse_entity_id(text)
    declared = [EntityRef(one.family, one.key, text) for one in table.of(key)]
    guesses = [EntityRef(family, key, text) for family in ("id", *FAMILIES)] if key else []
    for ref in ([given] if given else []) + declared + guesses:
        facts = await reader.facts_about([ref], _FACTS)
        told = _names(facts, "")
        if facts and (ref not in declared or key in {name_key(name) for name in told.get(node_key(ref), ())}):
            return ref
    return None
