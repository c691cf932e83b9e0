"""Graph expansion: from entities and documents over live facts to documents that never hold the question's words."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log10
from typing import Literal, Protocol

import msgspec

from api.retrieval.labels import Labels, NodeKey, node_key
from api.retrieval.reader import Reader
from schemas.knowledge import DocumentRef, EntityRef, Fact, LiteralValue, Node
from schemas.query import PathStep

FACTS = (2_000, 1_200, 600, 400)
"""Facts looked at in each hop."""
FRONTIER = (60, 24, 12, 8)
"""Nodes walked from in each hop, the strongest ones: further out, more paths add less."""
FAN_OUT = 20
"""Edges followed from one node by one predicate in one direction, so that a hub does not flood the walk."""
WEAKEST = 0.15
"""Paths below this strength are given up."""
_STATED = 0.5
_MANY = 3

Direction = Literal["out", "in"]


class Weights(Protocol):
    """How strong an edge is."""

    def weight(self, predicate: str, direction: Direction) -> float:
        """Return a factor from 0 to 1."""


class Edge(msgspec.Struct, frozen=True):
    """A fact walked in one direction."""

    fact: Fact
    direction: Direction


class Reached(msgspec.Struct, frozen=True):
    """A node with the strongest path to it."""

    node: Node
    score: float
    edges: tuple[Edge, ...]


class Walk(msgspec.Struct, frozen=True):
    """What a walk found."""

    documents: dict[str, Reached]
    labels: Labels

    def path(self, document: str, names: Mapping[str, str]) -> list[PathStep]:
        """Return the path to a document for people; `names` are the predicates' labels."""
        reached = self.documents.get(document)
        return [_step(edge, self.labels, names) for edge in reached.edges] if reached else []


async def expand(reader: Reader, starts: Mapping[Node, float], weights: Weights, hops: int) -> Walk:
    """Walk up to `hops` facts (at most four) from the starts; keep the strongest path to each document."""
    labels = Labels()
    best: dict[NodeKey, Reached] = {node_key(node): Reached(node, score, ()) for node, score in starts.items()}
    documents: dict[str, Reached] = {}
    frontier = list(best.values())
    for nodes, limit in list(zip(FRONTIER, FACTS, strict=True))[:hops]:
        frontier = frontier[:nodes]
        facts = await reader.facts_about([reached.node for reached in frontier], limit)
        frontier = await asyncio.to_thread(_hop, frontier, facts, weights, best, documents, labels)
        if not frontier:
            break
    for reached in best.values():
        if isinstance(reached.node, DocumentRef) and reached.edges:
            _keep(documents, reached.node.key, reached)
    manifests = await reader.manifests({*documents, *_named_documents(documents)})
    labels.learn_titles(manifests)
    return Walk({key: reached for key, reached in documents.items() if key in manifests}, labels)


def _hop(
    frontier: Sequence[Reached],
    facts: Sequence[Fact],
    weights: Weights,
    best: dict[NodeKey, Reached],
    documents: dict[str, Reached],
    labels: Labels,
) -> list[Reached]:
    """Take one step from every node of the frontier; thousands of facts, so not on the event loop."""
    labels.learn(facts)
    moves = _moves(frontier, facts, weights)
    _keep_stated(documents, moves)
    return _advance(best, moves)


def _moves(frontier: Sequence[Reached], facts: Sequence[Fact], weights: Weights) -> list[Reached]:
    """Return one step further from each node, limited and damped where there are many of a kind."""
    here = {node_key(reached.node): reached for reached in frontier}
    kinds: defaultdict[tuple[NodeKey, str, Direction], list[Fact]] = defaultdict(list)
    for fact in facts:
        if isinstance(fact.object, LiteralValue):
            continue
        if (start := node_key(fact.subject)) in here:
            kinds[start, fact.predicate, "out"].append(fact)
        if (start := node_key(fact.object)) in here:
            kinds[start, fact.predicate, "in"].append(fact)
    moves = []
    for (start, predicate, direction), found in kinds.items():
        factor = weights.weight(predicate, direction) / (1 + max(0.0, log10(len(found) / _MANY)))
        found.sort(key=lambda fact: (-fact.confidence, _reverse(fact.observed_at), fact.iri))
        moves += [_moved(here[start], fact, direction, factor) for fact in found[:FAN_OUT]]
    return [move for move in moves if move.score >= WEAKEST]


def _moved(start: Reached, fact: Fact, direction: Direction, factor: float) -> Reached:
    target = fact.object if direction == "out" else fact.subject
    assert not isinstance(target, LiteralValue)
    score = start.score * factor * fact.confidence
    return Reached(target, score, (*start.edges, Edge(fact, direction)))


def _advance(best: dict[NodeKey, Reached], moves: Sequence[Reached]) -> list[Reached]:
    """Keep the strongest path to each node; return the improved ones as the next frontier."""
    improved: dict[NodeKey, Reached] = {}
    for move in sorted(moves, key=lambda m: (-m.score, [edge.fact.iri for edge in m.edges])):
        key = node_key(move.node)
        named = key in best and not best[key].edges and not isinstance(move.node, DocumentRef)
        if not named and (key not in best or move.score > best[key].score):
            best[key] = improved[key] = move
    return list(improved.values())


def _keep_stated(documents: dict[str, Reached], moves: Sequence[Reached]) -> None:
    """A document that states a fact about an entity of the path is reached too, more weakly."""
    for move in moves:
        fact = move.edges[-1].fact
        if isinstance(fact.subject, EntityRef) and len(move.edges) == 1:
            stated = Reached(DocumentRef(fact.document), move.score * _STATED, move.edges)
            _keep(documents, fact.document, stated)


def _keep(documents: dict[str, Reached], key: str, reached: Reached) -> None:
    if key not in documents or reached.score > documents[key].score:
        documents[key] = reached


def _named_documents(documents: Mapping[str, Reached]) -> set[str]:
    """Documents that stand as nodes on the paths, whose titles are shown."""
    ends = (end for reached in documents.values() for e in reached.edges for end in (e.fact.subject, e.fact.object))
    return {end.key for end in ends if isinstance(end, DocumentRef)}


def _step(edge: Edge, labels: Labels, names: Mapping[str, str]) -> PathStep:
    fact = edge.fact
    return PathStep(
        subject=labels.of(fact.subject),
        predicate=fact.predicate,
        object=labels.of(fact.object),
        direction=edge.direction,
        document=fact.document,
        confidence=fact.confidence,
        label=names.get(fact.predicate, ""),
    )


def _reverse(time: str) -> str:
    """Order texts of digits newest first."""
    return time.translate(_NINES)


_NINES = str.maketrans("0123456789", "9876543210")
