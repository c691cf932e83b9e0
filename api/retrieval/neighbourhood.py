"""The part of the graph around an entity, as nodes and edges."""

from collections.abc import Iterable

import msgspec

from api.retrieval.labels import Labels, NodeInfo, NodeKey, node_info, node_key
from api.retrieval.reader import Reader
from pipeline.steps.iris import node_iri
from schemas.knowledge import ALIAS, LABEL, SAME_AS, TYPE, DocumentRef, EntityRef, Fact, LiteralValue, Node, Term

MOST_NODES = 300
_FACTS_PER_HOP = 2_000
_NAMING = (TYPE, LABEL, ALIAS)


class EdgeInfo(msgspec.Struct, kw_only=True):
    """An edge with the documents that state it."""

    source: str
    target: str
    predicate: str
    documents: list[str]
    confidence: float


class Neighbourhood(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes and edges."""

    nodes: list[NodeInfo]
    edges: list[EdgeInfo]
    truncated: bool
    """True when there was more than the limits let through."""


class EntityView(msgspec.Struct, frozen=True, kw_only=True):
    """An entity with what is told of it."""

    id: str
    iri: str
    label: str
    type: str
    types: list[str]
    labels: list[str]
    aliases: list[str]
    same_as: list[NodeInfo]
    documents: list[NodeInfo]
    """Documents that tell of it."""
    facts: list["EntityFact"]


class EntityFact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing told of an entity, with every document that says so."""

    subject: NodeInfo
    predicate: str
    object: NodeInfo
    documents: list[str]
    confidence: float


async def neighbourhood(reader: Reader, start: Node, hops: int, relations: frozenset[str]) -> Neighbourhood:
    """Walk breadth first; names and types label nodes and are no edges. `relations` limits the predicates."""
    labels, edges = Labels(), dict[tuple[str, str, str], EdgeInfo]()
    nodes: dict[NodeKey, Term] = {node_key(start): start}
    frontier: list[Node] = [start]
    truncated = False
    for _ in range(hops):
        facts = await reader.facts_about(frontier, _FACTS_PER_HOP)
        truncated |= len(facts) >= _FACTS_PER_HOP
        labels.learn(facts)
        frontier = []
        for fact in facts:
            if fact.predicate in _NAMING or (relations and fact.predicate not in relations):
                continue
            for end in (fact.subject, fact.object):
                truncated |= not _add(nodes, frontier, end)
            if all(_key(end) in nodes for end in (fact.subject, fact.object)):
                _add_edge(edges, fact, labels)
    await _name(reader, labels, nodes.values())
    infos = [node_info(term, labels) for term in nodes.values()]
    return Neighbourhood(nodes=infos, edges=[edges[key] for key in sorted(edges)], truncated=truncated)


async def view_entity(reader: Reader, ref: EntityRef, limit: int) -> EntityView | None:
    """Return what the asker may know of an entity; None when no live, permitted fact tells of it."""
    facts = await reader.facts_about([ref], limit)
    if not facts:
        return None
    labels = Labels()
    labels.learn(facts)
    told = sorted({fact.document for fact in facts})
    labels.learn_titles(await reader.manifests(told))
    ends = [end for fact in facts if fact.predicate == SAME_AS for end in (fact.subject, fact.object)]
    same = {node_key(end): end for end in ends if isinstance(end, EntityRef)}
    info, names = node_info(ref, labels), labels.all_of(ref)
    return EntityView(
        id=info.id,
        iri=node_iri(ref),
        label=info.label,
        type=info.type,
        types=names["types"],
        labels=names["labels"],
        aliases=names["aliases"],
        same_as=[node_info(end, labels) for key, end in sorted(same.items()) if key != node_key(ref)],
        documents=[node_info(DocumentRef(key), labels) for key in told],
        facts=_entity_facts(facts, labels),
    )


def _entity_facts(facts: Iterable[Fact], labels: Labels) -> list[EntityFact]:
    """Join facts of several documents that say the same."""
    joined: dict[tuple[str, str, str], EntityFact] = {}
    for fact in facts:
        if fact.predicate in _NAMING:
            continue
        subject, obj = node_info(fact.subject, labels), node_info(fact.object, labels)
        one = joined.setdefault(
            (subject.id, fact.predicate, obj.id),
            EntityFact(subject=subject, predicate=fact.predicate, object=obj, documents=[], confidence=fact.confidence),
        )
        if fact.document not in one.documents:
            one.documents.append(fact.document)
    return [joined[key] for key in sorted(joined, key=lambda k: (k[1], k[0], k[2]))]


def _key(term: Term) -> NodeKey:
    return ("literal", f"{term.datatype}:{term.value}") if isinstance(term, LiteralValue) else node_key(term)


def _add(nodes: dict[NodeKey, Term], frontier: list[Node], term: Term) -> bool:
    """Add a node; False when the limit is reached."""
    key = _key(term)
    if key in nodes:
        return True
    if len(nodes) >= MOST_NODES:
        return False
    nodes[key] = term
    if not isinstance(term, LiteralValue):
        frontier.append(term)
    return True


def _add_edge(edges: dict[tuple[str, str, str], EdgeInfo], fact: Fact, labels: Labels) -> None:
    source, target = node_info(fact.subject, labels).id, node_info(fact.object, labels).id
    edge = edges.setdefault(
        (source, fact.predicate, target),
        EdgeInfo(source=source, target=target, predicate=fact.predicate, documents=[], confidence=fact.confidence),
    )
    edge.confidence = max(edge.confidence, fact.confidence)
    if fact.document not in edge.documents:
        edge.documents.append(fact.document)


async def _name(reader: Reader, labels: Labels, terms: Iterable[Term]) -> None:
    """Learn the titles of document nodes, and the names of entities at the rim."""
    kept = list(terms)
    labels.learn_titles(await reader.manifests(term.key for term in kept if isinstance(term, DocumentRef)))
    rim = [term for term in kept if isinstance(term, EntityRef) and not labels.type_of(term)]
    labels.learn(await reader.facts_about(rim, _FACTS_PER_HOP))
