"""The three sources of evidence: chunks, graph, records."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from api.retrieval.entities import LinkedEntity
from api.retrieval.expand import Walk, expand
from api.retrieval.filters import Where
from api.retrieval.labels import NodeKey, node_key
from api.retrieval.passages import Passage, best_chunks, read_passages
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.search import SearchPlan
from api.retrieval.stages import searched
from api.routing.words import RoutingWords
from pipeline.text.normalize import name_key
from schemas.change_event import split_document_key
from schemas.knowledge import DESCRIBES, SAME_AS, DocumentRef, EntityRef, Node

HOPS = 3
_START_DOCUMENTS = 3
_DOCUMENT_START = 0.5
_GRAPH_DOCUMENTS = 16
_CHUNKS_READ = 6
_RECORD_CHUNKS = 3
_RECORDS = 5
_RECORD_FACTS = 500
_PATH_SHARE = 0.45
_UNSEEN = 0.8
_FOREIGN = 0.5
_TOPIC_FACTS = 1_000
STRONG_PATH = 0.5


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What every source is asked."""

    reader: Reader
    question: AnalyzedQuestion
    entities: list[LinkedEntity]
    notes: list[str]
    """Warnings from the preparation."""
    where: Where
    top_k: int
    words: RoutingWords
    labels: Callable[[str], Sequence[str]]
    """Labels of a document's fields, for questions that name one."""


async def ask_chunks(ask: Ask) -> list[Passage]:
    """Hybrid search over the texts."""
    _, passages = await searched(ask.reader, ask.question, SearchPlan(where=ask.where, wanted=ask.top_k))
    return passages


async def ask_graph(ask: Ask, found: Sequence[Passage]) -> list[Passage]:
    """Walk from the question's entities and the best documents; weigh what is reached with what was found.

    Up to six chunks of each document come back: the answer's sentences decide which one is shown.
    """
    hops = HOPS + any(entity.tied for entity in ask.entities)  # the step from an alias to its thing is free
    walk = await expand(ask.reader, _starts(ask, found), ask.words, hops)
    strongest = sorted(walk.documents, key=lambda key: (-walk.documents[key].score, key))[:_GRAPH_DOCUMENTS]
    candidates = await best_chunks(ask.reader, ask.question, ask.where, strongest, _CHUNKS_READ)
    known = {passage.candidate.id for passage in found}
    read = await read_passages(ask.reader, candidates, "graph")
    reached = [passage for passage in read if passage.candidate.id not in known]
    foreign = await _foreign(ask, {passage.document for passage in (*found, *reached)})
    weighed = [_weighed(passage, walk, ask.words, 1.0, foreign) for passage in found]
    weighed += [_weighed(passage, walk, ask.words, _UNSEEN, foreign) for passage in reached]
    return sorted(weighed, key=order)


async def _foreign(ask: Ask, documents: Collection[str]) -> set[str]:
    """Return the documents that are about something, but about nothing that the question names."""
    named = {node_key(entity.ref) for entity in ask.entities}
    if not named:
        return set()
    nodes = [DocumentRef(key) for key in sorted(documents)]
    facts = [f for f in await ask.reader.facts_about(nodes, _TOPIC_FACTS) if f.predicate in ask.words.topics]
    topics: dict[str, set[NodeKey]] = {}
    for fact in facts:
        if isinstance(fact.subject, DocumentRef) and isinstance(fact.object, EntityRef):
            topics.setdefault(fact.subject.key, set()).add(node_key(fact.object))
    return {key for key, about in topics.items() if about.isdisjoint(named)}


def _starts(ask: Ask, found: Sequence[Passage]) -> dict[Node, float]:
    starts: dict[Node, float] = {entity.ref: 1.0 for entity in ask.entities if not entity.tied}
    for passage in found[:_START_DOCUMENTS]:
        starts.setdefault(DocumentRef(passage.document), _DOCUMENT_START)
    return starts


def _weighed(passage: Passage, walk: Walk, words: RoutingWords, share: float, foreign: Collection[str]) -> Passage:
    """Weigh the passage by its own score and by its path's strength."""
    reached, away = walk.documents.get(passage.document), passage.document in foreign
    strength = reached.score * (_FOREIGN if away else 1.0) if reached else 0.0
    return msgspec.structs.replace(
        passage,
        score=round((1 - _PATH_SHARE) * passage.score * share + _PATH_SHARE * strength, 6),
        path=tuple(walk.path(passage.document, words.labels)),
        strength=round(strength, 6),
        foreign=away,
        sources=tuple(dict.fromkeys((*passage.sources, "graph"))) if reached else passage.sources,
    )


def is_far(passage: Passage) -> bool:
    """Say whether only other things lead from what was asked about to this document, which need not name it."""
    edges = sum(step.predicate != SAME_AS for step in passage.path)
    return edges > 1 and passage.candidate.exact == 0 and passage.strength >= STRONG_PATH


def order(passage: Passage) -> tuple[float, str, int]:
    """Sort passages best first, ties by place."""
    return -passage.score, passage.document, passage.candidate.ref.start


async def ask_records(ask: Ask, found: Sequence[Passage]) -> list[Passage]:
    """Read the records that describe the question's entities, or that bear its identifiers as their key."""
    described = await _described(ask)
    named = {name_key(identifier) for identifier in ask.question.identifiers}
    own = [p.document for p in found if name_key(split_document_key(p.document)[2]) in named]
    documents = list(dict.fromkeys([*own, *described]))[:_RECORDS]
    candidates = await best_chunks(ask.reader, ask.question, ask.where, documents, _RECORD_CHUNKS)
    passages = await read_passages(ask.reader, candidates, "db")
    return [
        msgspec.structs.replace(
            passage, kind="record", fields=ask.reader.asker.visible_fields(passage.candidate.manifest)
        )
        for passage in passages
    ]


async def _described(ask: Ask) -> list[str]:
    """Return documents that describe one of the entities, the first entity's first."""
    refs: list[EntityRef] = [entity.ref for entity in ask.entities]
    facts = await ask.reader.facts_about(refs, _RECORD_FACTS)
    order = {(ref.family, ref.key): n for n, ref in enumerate(refs)}
    found = [
        (order.get((fact.object.family, fact.object.key), len(order)), fact.subject.key)
        for fact in facts
        if fact.predicate == DESCRIBES and isinstance(fact.subject, DocumentRef) and isinstance(fact.object, EntityRef)
    ]
    return [document for _, document in sorted(set(found))]
