"""The vocabulary: which family an entity belongs to, by the ontology's classes and the identifier patterns."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import pyoxigraph as ox

import schemas
from pipeline.errors import InvalidConfiguration
from pipeline.steps.iris import V
from pipeline.text.identifiers import Identifiers
from pipeline.text.normalize import name_key
from pipeline.text.patterns import load_identifiers
from schemas.knowledge import EntityRef

CORE_ONTOLOGY = Path(schemas.__file__).parent / "ontology" / "core.ttl"
CONCEPT = "concept"
"""Family of classes that belong to no other, and of nouns that patterns find in text."""

_SUBCLASS = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#subClassOf")
_FAMILY = ox.NamedNode(f"{V}family")


class Vocabulary:
    """Turns names into mention-level entities. Immutable."""

    def __init__(self, families: Mapping[str, str], identifiers: Identifiers) -> None:
        """Take class (local name) → family, and the identifier patterns."""
        self.families, self.identifiers = dict(families), identifiers
        # Few names make up most columns (departments, people), and looking for identifiers is the dear part.
        self._known = lru_cache(maxsize=16384)(self._entity)

    def entity(self, kind: str, surface: str) -> EntityRef | None:
        """Return the entity that a name of class `kind` stands for; None when nothing is left of the name.

        Family `id` when the whole name is an identifier, so that a column and a text agree on it.
        """
        return self._known(kind, surface)

    def _entity(self, kind: str, surface: str) -> EntityRef | None:
        key = name_key(surface)
        return EntityRef(self.family(kind, key), key, surface.strip()) if key else None

    def family(self, kind: str, key: str) -> str:
        """Return the family of a normalized name of class `kind`."""
        found = self.identifiers.find_folded(key)
        if len(found) == 1 and (found[0].start, found[0].end) == (0, len(key)):
            return "id"
        return self.families.get(kind, CONCEPT)


def class_families(ontologies: Iterable[Path | str] = ()) -> dict[str, str]:
    """Read class → family from Turtle files, beside the product's own ontology.

    A class takes the family of the nearest class above it (rdfs:subClassOf) that has `v:family`; the
    first in name order when two are equally near. Raises InvalidConfiguration with file and reason.
    """
    parents: dict[str, set[str]] = {}
    own: dict[str, str] = {}
    for path in (CORE_ONTOLOGY, *map(Path, ontologies)):
        for triple in _triples(path):
            if triple.predicate == _SUBCLASS:
                parents.setdefault(_local(triple.subject), set()).add(_local(triple.object))
            elif triple.predicate == _FAMILY and isinstance(triple.object, ox.Literal):
                own[_local(triple.subject)] = triple.object.value
    return {name: _nearest(name, parents, own) for name in sorted({*parents, *own}) if name}


def _nearest(name: str, parents: Mapping[str, set[str]], own: Mapping[str, str]) -> str:
    seen: set[str] = set()
    level = {name}
    while level:
        if found := sorted(level & own.keys()):
            return own[found[0]]
        seen |= level
        level = {up for one in level for up in parents.get(one, ())} - seen
    return CONCEPT


def _triples(path: Path) -> list[ox.Triple]:
    try:
        return [quad.triple for quad in ox.parse(path=str(path), format=ox.RdfFormat.TURTLE)]
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidConfiguration(f"{path}: cannot be read as Turtle: {error}") from error


def _local(term: object) -> str:
    """Return the local name in our namespace, else the whole IRI, else ""."""
    return term.value.removeprefix(V) if isinstance(term, ox.NamedNode) else ""


@lru_cache(maxsize=1)
def default_vocabulary() -> Vocabulary:
    """Return the product's own vocabulary: core ontology, the product's identifier patterns."""
    return Vocabulary(class_families(), load_identifiers())
