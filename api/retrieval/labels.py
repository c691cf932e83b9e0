"""Names of nodes for people, out of the facts that the asker may read."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from pipeline.text.normalize import name_key
from schemas.document import Manifest
from schemas.knowledge import ALIAS, LABEL, TYPE, DocumentRef, EntityRef, Fact, LiteralValue, Node, Term

NodeKey = tuple[str, str]
"""(family, key) of an entity; ("", document key) of a document. Surfaces do not count."""


def node_key(node: Node) -> NodeKey:
    """Return what makes two nodes one."""
    return ("", node.key) if isinstance(node, DocumentRef) else (node.family, node.key)


def entity_id(ref: EntityRef) -> str:
    """Return the entity's id in the API: `family:key`."""
    return f"{ref.family}:{ref.key}"


def parse_entity_id(text: str) -> EntityRef | None:
    """Read an entity id; None when it is none."""
    family, colon, key = text.partition(":")
    return EntityRef(family, key, key) if colon and family and key else None


class Labels:
    """Collects surfaces, labels and types while facts pass by."""

    def __init__(self) -> None:
        """Start empty."""
        self._surfaces: defaultdict[NodeKey, Counter[str]] = defaultdict(Counter)
        self._labels: defaultdict[NodeKey, set[str]] = defaultdict(set)
        self._aliases: defaultdict[NodeKey, set[str]] = defaultdict(set)
        self._types: defaultdict[NodeKey, set[str]] = defaultdict(set)
        self._titles: dict[NodeKey, str] = {}

    def learn(self, facts: Iterable[Fact]) -> None:
        """Take names from facts."""
        for fact in facts:
            for node in (fact.subject, fact.object):
                if isinstance(node, EntityRef):
                    self._surfaces[node_key(node)][node.surface] += 1
            if fact.predicate in (LABEL, ALIAS, TYPE):
                kept = {LABEL: self._labels, ALIAS: self._aliases, TYPE: self._types}[fact.predicate]
                kept[node_key(fact.subject)].add(plain(fact.object))

    def learn_titles(self, manifests: Mapping[str, Manifest]) -> None:
        """Take titles of documents."""
        for key, manifest in manifests.items():
            self._titles["", key] = manifest.title
            self._types["", key].add(manifest.type)

    def of(self, node: Term) -> str:
        """Return the best name: a surface that is the key written out, else a label, else any surface."""
        if isinstance(node, LiteralValue):
            return node.value
        key = node_key(node)
        if isinstance(node, DocumentRef):
            return self._titles.get(key) or node.key
        surfaces = sorted(self._surfaces[key].items(), key=lambda item: (-item[1], item[0]))
        own = next((surface for surface, _ in surfaces if name_key(surface) == node.key), "")
        labels = sorted(self._labels[key])
        return own or (labels[0] if labels else "") or (surfaces[0][0] if surfaces else node.surface or node.key)

    def type_of(self, node: Node) -> str:
        """Return the node's type, or ""; of several the first by name."""
        return next(iter(sorted(self._types[node_key(node)])), "")

    def all_of(self, node: Node) -> dict[str, list[str]]:
        """Return all types, labels and aliases."""
        key = node_key(node)
        return {
            "types": sorted(self._types[key]),
            "labels": sorted(self._labels[key]),
            "aliases": sorted(self._aliases[key]),
        }


class NodeInfo(msgspec.Struct, frozen=True):
    """A node as the API shows it."""

    id: str
    label: str
    type: str
    kind: str
    """`entity`, `document` or `literal`."""


def plain(term: Term) -> str:
    """Return a term as text."""
    if isinstance(term, LiteralValue):
        return term.value
    return term.key if isinstance(term, DocumentRef) else term.surface


def node_info(term: Term, labels: Labels) -> NodeInfo:
    """Return what the API tells of a node."""
    if isinstance(term, LiteralValue):
        return NodeInfo(f"literal:{term.datatype}:{term.value}", term.value, term.datatype, "literal")
    if isinstance(term, DocumentRef):
        return NodeInfo(f"document:{term.key}", labels.of(term), labels.type_of(term), "document")
    return NodeInfo(entity_id(term), labels.of(term), labels.type_of(term), "entity")
