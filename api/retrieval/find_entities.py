"""Finding entities by a part of their name, and by a whole one."""

import base64
import binascii

import msgspec

from api.retrieval.entities import FAMILIES
from api.retrieval.labels import Labels, entity_id, node_key, parse_entity_id, plain
from api.retrieval.reader import Reader
from pipeline.errors import InvalidQuery
from pipeline.steps.iris import node_iri
from pipeline.steps.name_index import NameIndex
from pipeline.text.normalize import name_key
from schemas.knowledge import EntityRef

_FACTS = 2_000
_FACTS_EACH = 8
_OVERFETCH = 4
MOST_NAMES = 4_000


class FoundEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity, with the name by which it was found."""

    id: str
    iri: str
    label: str
    type: str
    name: str


class EntityPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entities, and the place from which the next page goes on; empty when there is none."""

    entities: list[FoundEntity]
    next: str = ""


_Place = tuple[int, str, str]
"""Length of the shortest name that holds the text, that name, and the entity's id: the order of the list."""


async def find_entities(reader: Reader, text: str, limit: int, after: str = "") -> EntityPage:
    """Return entities with a live, permitted name that holds `text`, behind the place `after`.

    A place is where an entity stands, not how many stood before it: pages neither repeat nor skip one that keeps its
    names, whatever comes and goes. At most MOST_NAMES names are looked at, the shortest first.
    """
    start = _read_place(after)
    wanted = limit * _OVERFETCH
    while True:
        found = await reader.indexes.graph.find_entities(text, reader.classes, wanted)
        names: dict[str, tuple[EntityRef, list[str]]] = {}
        for node, name in found:
            if isinstance(node, EntityRef):
                names.setdefault(entity_id(node), (node, []))[1].append(name)
        waiting = sorted(place for one in names if (place := _place(one, names[one][1])) > start)
        if len(waiting) > limit or len(found) < wanted or wanted >= MOST_NAMES:
            break
        wanted = min(MOST_NAMES, wanted * _OVERFETCH)
    page, more = waiting[:limit], len(waiting) > limit
    entities = await _told(reader, [names[place[2]] for place in page])
    return EntityPage(entities=entities, next=_written(page[-1]) if more else "")


async def _told(reader: Reader, named: list[tuple[EntityRef, list[str]]]) -> list[FoundEntity]:
    """Return those that live facts give such a name, in order."""
    pairs = [(node_iri(ref), name) for ref, names in named for name in names]
    saying = await reader.live_facts(await reader.indexes.graph.naming(pairs, reader.classes, _FACTS_EACH))
    live = {(node_key(fact.subject), plain(fact.object)) for fact in saying}
    labels = Labels()
    labels.learn(await reader.facts_about([ref for ref, _ in named], _FACTS))
    labels.learn(saying)
    return [
        FoundEntity(id=entity_id(ref), iri=node_iri(ref), label=labels.of(ref), type=labels.type_of(ref), name=known[0])
        for ref, names in named
        if (known := sorted((n for n in names if (node_key(ref), n) in live), key=lambda n: (len(n), n)))
    ]


def _place(entity: str, names: list[str]) -> _Place:
    size, name = min((len(name), name) for name in names)
    return size, name, entity


def _written(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _read_place(text: str) -> _Place:
    """Read a place back. Raises InvalidQuery where it is none."""
    if not text:
        return (0, "", "")
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Place)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise InvalidQuery("This is no place in the list; send `next` of the page before", pointer="/after") from error


async def resolve_entity(reader: Reader, names: NameIndex, text: str) -> EntityRef | None:
    """Return the entity of an id or of a whole name, if the asker may know of it."""
    given, key = parse_entity_id(text), name_key(text)
    declared = [ref for match in names.find(text) for ref in match.entities if ref.key == key]
    guesses = [EntityRef(family, key, text) for family in ("id", *FAMILIES)] if key else []
    candidates = [*([given] if given else []), *declared, *guesses]
    facts = await reader.facts_about(candidates, _FACTS)
    told = {node_key(end) for fact in facts for end in (fact.subject, fact.object) if isinstance(end, EntityRef)}
    return next((ref for ref in candidates if node_key(ref) in told), None)
