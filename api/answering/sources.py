"""The three sources of evidence: chunks, graph, records."""

import math
from collections.abc import Callable, Sequence

import msgspec

from api.retrieval.entities import LinkedEntity
from api.retrieval.expand import Walk, expand
from api.retrieval.filters import Where
from api.retrieval.passages import Passage, best_chunks, read_passages
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.search import SearchPlan, search
from api.routing.words import RoutingWords
from pipeline.text.normalize import name_key
from schemas.change_event import split_document_key
from schemas.knowledge import DESCRIBES, DocumentRef, EntityRef, Node
from schemas.query import PathStep

HOPS = 3
_START_DOCUMENTS = 3
_DOCUMENT_START = 0.5
_GRAPH_DOCUMENTS = 40
_RECORDS = 5
_RECORD_CHUNKS = 3
_RECORD_FACTS = 500
_PATH_SHARE = 0.45
_UNSEEN = 0.5
_GRAPH_SLOTS = 0.3
_STRONG_PATH = 0.3


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What every source is asked."""

    reader: Reader
    question: AnalyzedQuestion
    entities: list[LinkedEntity]
    where: Where
    top_k: int
    words: RoutingWords
    labels: Callable[[str], Sequence[str]]
    """Labels of a document's fields, for questions that name one."""


async def ask_chunks(ask: Ask) -> list[Passage]:
    """Hybrid search over the texts."""
    found = await search(ask.reader, ask.question, SearchPlan(where=ask.where, wanted=ask.top_k))
    return await read_passages(ask.reader, found[: ask.top_k], "vector")


async def ask_graph(ask: Ask, found: Sequence[Passage]) -> list[Passage]:
    """Walk from the question's entities and the best documents; rank what is reached with what was found."""
    walk = await expand(ask.reader, _starts(ask, found), ask.words, HOPS)
    seen = {passage.document for passage in found}
    strongest = sorted(walk.documents, key=lambda key: (-walk.documents[key].score, key))[:_GRAPH_DOCUMENTS]
    unseen = [key for key in strongest if key not in seen]
    reached = await read_passages(
        ask.reader, await best_chunks(ask.reader, ask.question, ask.where, unseen, 1), "graph"
    )
    known = [_with_path(passage, walk, ask.words, 1.0) for passage in found]
    return _ranked(known, [_with_path(passage, walk, ask.words, _UNSEEN) for passage in reached], ask.top_k)


def _starts(ask: Ask, found: Sequence[Passage]) -> dict[Node, float]:
    starts: dict[Node, float] = {entity.ref: 1.0 for entity in ask.entities}
    for passage in found[:_START_DOCUMENTS]:
        starts.setdefault(DocumentRef(passage.document), _DOCUMENT_START)
    return starts


def _with_path(passage: Passage, walk: Walk, words: RoutingWords, share: float) -> Passage:
    """Weigh the passage by its own score and by its path's strength."""
    reached = walk.documents.get(passage.document)
    strength = reached.score if reached else 0.0
    score = (1 - _PATH_SHARE) * passage.score * share + _PATH_SHARE * strength
    path: tuple[PathStep, ...] = tuple(walk.path(passage.document, words.labels)) if reached else ()
    sources = tuple(dict.fromkeys((*passage.sources, "graph"))) if reached else passage.sources
    return msgspec.structs.replace(passage, score=round(score, 6), path=path, sources=sources)


def _ranked(known: list[Passage], reached: list[Passage], top_k: int) -> list[Passage]:
    """Order all by score, but keep places for documents that only a strong path leads to."""
    known.sort(key=_order)
    reached.sort(key=_order)
    kept = [passage for passage in reached if passage.path and _path_strength(passage) >= _STRONG_PATH]
    places = min(len(kept), math.ceil(top_k * _GRAPH_SLOTS))
    chosen = known[: top_k - places] + reached[:places]
    rest = sorted(known[top_k - places :] + reached[places:], key=_order)
    return sorted([*chosen, *rest[: top_k - len(chosen)]], key=_order)


def _path_strength(passage: Passage) -> float:
    return passage.score / _PATH_SHARE


def _order(passage: Passage) -> tuple[float, str, int]:
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
