"""Facts in a pyoxigraph store on disk: the blocking half of the graph backend."""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from pipeline.backends import graph_terms as terms
from pipeline.backends.graph_oxigraph_names import NameList, NameTriple
from pipeline.backends.graph_terms import Iri, QuadTerms, Typed
from pipeline.errors import BackendUnavailable
from pipeline.steps.iris import node_iri, predicate_iri
from schemas.knowledge import ALIAS, LABEL, DocumentRef, EntityRef, Fact, Node

HUB_FACTS = 400
"""Facts of one node that are looked at (10 µs each) before it counts as a hub, and of a hub again."""
FACTS_PER_UPDATE = 2_000

_NAME_PREDICATES = [ox.NamedNode(predicate_iri(name)) for name in (LABEL, ALIAS)]
_SUBJECT, _PREDICATE, _OBJECT = (ox.NamedNode(name) for name in (terms.SUBJECT, terms.PREDICATE, terms.OBJECT))
_DOCUMENT, _VERSION = ox.NamedNode(terms.DOCUMENT), ox.NamedNode(terms.FACTS_VERSION)
_STATEMENT, _RECORD = ox.NamedNode(terms.STATEMENT), ox.NamedNode(terms.RECORD)
_META = ox.NamedNode(terms.META_GRAPH)

FactKey = tuple[ox.NamedNode, ox.NamedNode]
"""A fact node and its graph."""


class FactStore:
    """Owns the store's folder. Writing methods must be called from one thread at a time."""

    def __init__(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._store = ox.Store(path)
        except (OSError, RuntimeError) as error:  # RuntimeError: files that are there, but damaged
            raise BackendUnavailable(
                f"{path}: {error}; another process may hold the graph; if it is damaged, remove {path.parent} "
                "and start again: the graph is built anew from the records"
            ) from error
        self._names: NameList | None = None
        # Held while the list is read from the store, and to change it after each write: nothing is missed.
        self._names_lock = threading.Lock()

    def stage(self, facts: Sequence[Fact]) -> None:
        """Add facts in one transaction."""
        quads = [quad for fact in facts for quad in terms.fact_quads(fact)]
        self._store.extend([_quad(quad) for quad in quads])
        with self._names_lock:
            if self._names is not None:
                self._names.add(_name_triples(_quad(terms.plain_triple(fact)) for fact in facts))

    def collect(self, live: dict[str, str], revision: int) -> None:
        """Remove what is not live. The update that leaves nothing to remove carries the revision."""
        dead = [key for document, version in live.items() for key in self._dead_facts(document, version)]
        pages = [dead[i : i + FACTS_PER_UPDATE] for i in range(0, len(dead), FACTS_PER_UPDATE)] or [[]]
        for page in pages:
            triples = list(self._unsupported(page))
            update = _removal(page, triples)
            if page is pages[-1]:
                update += _new_revision(revision)
            self._store.update(update)
            with self._names_lock:
                if self._names is not None:
                    self._names.remove(_name_triples(triples))

    def revision(self) -> int:
        """Return the revision that the store remembers, 0 when none."""
        quads = self._quads(ox.NamedNode(terms.META), ox.NamedNode(terms.REVISION), None, _META)
        return max((int(quad.object.value) for quad in quads), default=0)

    def facts_about(self, nodes: Sequence[Node], graphs: Sequence[str] | None, limit: int) -> list[Fact]:
        """Return facts with one of the nodes as subject or object, ordered by IRI, at most `limit`."""
        keys: set[FactKey] = set()
        for node in dict.fromkeys(terms.iri(node_iri(node)).value for node in nodes):
            for predicate in (_SUBJECT, _OBJECT):
                keys.update(self._keys(predicate, ox.NamedNode(node), graphs, limit))
        ordered = sorted(keys, key=lambda key: key[0].value)
        return list(islice(self._facts(ordered), max(limit, 0)))

    def facts_of(self, documents: Sequence[str]) -> list[Fact]:
        """Return all facts of these documents, ordered by IRI."""
        keys = [
            (quad.subject, quad.graph_name)
            for document in dict.fromkeys(documents)
            for quad in self._quads(None, _DOCUMENT, _term(terms.document_term(document)), None)
        ]
        return list(self._facts(sorted(keys, key=lambda key: key[0].value)))

    def missing(self, versions: Mapping[str, str]) -> set[str]:
        """Return the documents of which no fact of the version given stands."""
        return {document for document, version in versions.items() if not self._has_fact(document, version)}

    def held(self, documents: Sequence[str]) -> set[str]:
        """Return the documents of which a fact stands."""
        return {document for document in documents if self._has_fact(document)}

    def _has_fact(self, document: str, version: str = "") -> bool:
        """Say whether a fact stands, of a version or of any."""
        facts = self._quads(None, _DOCUMENT, _term(terms.document_term(document)), None)
        if not version:
            return any(True for _ in facts)
        # None where it was removed since: each read sees the store as it is then.
        versions = (self._value((fact.subject, fact.graph_name), _VERSION) for fact in facts)
        return any(its is not None and its.value == version for its in versions)

    def find_entities(self, text: str, graphs: Collection[str] | None, limit: int) -> list[tuple[Node, str]]:
        """Return (node, name) pairs whose label or alias holds `text`, shortest name first."""
        found = []
        for triple in self.names().find(text, graphs, limit):
            statement = terms.statement_term(Iri(triple.subject), Iri(triple.predicate), Typed(triple.name))
            graph = ox.NamedNode(triple.graph)
            keys = self._quads(None, _STATEMENT, _term(statement), graph)
            for fact in islice(self._facts((quad.subject, graph) for quad in keys), 1):
                found.append((_named(fact.subject, triple.name), triple.name))
        return found

    def entity_names(self, limit: int) -> list[tuple[str, str]]:
        """Return (entity's IRI, name) of labels and aliases."""
        return list(islice(self.names().entities(), limit))

    def naming(self, names: Sequence[tuple[str, str]], graphs: Sequence[str] | None, each: int) -> list[Fact]:
        """Return facts that give these names, of each label and each alias at most `each`, ordered by IRI."""
        keys: set[FactKey] = set()
        for subject, name in names:
            for predicate in _NAME_PREDICATES:
                statement = _term(terms.statement_term(Iri(subject), Iri(predicate.value), Typed(name)))
                keys.update(islice(self._keys(_STATEMENT, statement, graphs, each), each))
        return list(self._facts(sorted(keys, key=lambda key: key[0].value)))

    def names(self) -> NameList:
        """Return the list of names, read from the store at the first call."""
        with self._names_lock:
            if self._names is None:
                self._names = NameList(
                    triple
                    for predicate in _NAME_PREDICATES
                    for triple in _name_triples(self._quads(None, predicate, None, None))
                )
            return self._names

    def fact_keys(self) -> list[FactKey]:
        """Return all fact nodes that have a record, ordered by IRI."""
        quads = self._quads(None, _RECORD, None, None)
        return sorted(((quad.subject, quad.graph_name) for quad in quads), key=lambda key: key[0].value)

    def whole_facts(self, keys: Iterable[FactKey]) -> list[Fact]:
        """Return those facts whose nodes are exactly what they were written as, quad for quad."""
        return [fact for key in keys for fact in self._facts([key]) if self._is_whole(key, fact)]

    def triples(self) -> list[tuple[str, str, str, str]]:
        """Return all plain triples as (class, subject, predicate, object), ordered; terms in N-Triples form."""
        return sorted(
            (graph.removeprefix(terms.CLASS_GRAPH_PREFIX), *_n3(quad))
            for graph in self.class_graphs()
            for quad in self._quads(None, None, None, ox.NamedNode(graph))
            if not quad.subject.value.startswith(terms.FACT_PREFIX)
        )

    def class_graphs(self) -> list[str]:
        """Return the IRIs of all class graphs."""
        graphs = [graph.value for graph in self._store.named_graphs() if isinstance(graph, ox.NamedNode)]
        return [graph for graph in graphs if graph.startswith(terms.CLASS_GRAPH_PREFIX)]

    def backup(self, folder: Path) -> None:
        """Write a checkpoint that may be opened read-only beside this store."""
        self._store.backup(folder)

    def close(self) -> None:
        """Bring everything to disk and let go of the folder."""
        self._store.flush()
        del self._store

    def _quads(
        self,
        subject: ox.NamedNode | None,
        predicate: ox.NamedNode | None,
        value: ox.NamedNode | ox.Literal | None,
        graph: ox.NamedNode | None,
    ) -> Iterator[Any]:
        """Yield quads; Any because the library's types allow blank nodes and more, which are never stored here."""
        return self._store.quads_for_pattern(subject, predicate, value, graph)

    def _dead_facts(self, document: str, live_version: str) -> Iterator[FactKey]:
        for quad in self._quads(None, _DOCUMENT, _term(terms.document_term(document)), None):
            versions = self._quads(quad.subject, _VERSION, None, quad.graph_name)
            if not live_version or live_version not in {version.object.value for version in versions}:
                yield quad.subject, quad.graph_name

    def _unsupported(self, dead: Sequence[FactKey]) -> Iterator[ox.Quad]:
        """Yield plain triples that only dead facts support."""
        gone = set(dead)
        stated = {(self._value(key, _STATEMENT), key[1]): key for key in dead}
        for (statement, graph), key in stated.items():
            if statement is None:  # damaged by hand: `triples` shows what it leaves behind
                continue
            if all((quad.subject, graph) in gone for quad in self._quads(None, _STATEMENT, statement, graph)):
                subject, predicate, value = (self._value(key, name) for name in (_SUBJECT, _PREDICATE, _OBJECT))
                yield ox.Quad(subject, predicate, value, graph)

    def _value(self, key: FactKey, name: ox.NamedNode) -> Any:
        return next((quad.object for quad in self._quads(key[0], name, None, key[1])), None)

    def _keys(
        self, predicate: ox.NamedNode, node: ox.NamedNode, graphs: Sequence[str] | None, limit: int
    ) -> Iterator[FactKey]:
        """Yield fact nodes in permitted graphs; of a hub's, a fixed part, but never none for being hidden."""
        bound = max(HUB_FACTS, limit)
        quads = list(islice(self._quads(None, predicate, node, None), bound + 1))
        if len(quads) <= bound or graphs is None:
            permitted = None if graphs is None else set(graphs)
            yield from (
                (quad.subject, quad.graph_name)
                for quad in quads
                if permitted is None or quad.graph_name.value in permitted
            )
            return
        found = (
            quad for graph in graphs for quad in islice(self._quads(None, predicate, node, ox.NamedNode(graph)), limit)
        )
        yield from ((quad.subject, quad.graph_name) for quad in islice(found, bound))

    def _facts(self, keys: Iterable[FactKey]) -> Iterator[Fact]:
        for subject, graph in keys:
            for quad in self._quads(subject, _RECORD, None, graph):
                fact = terms.read_record(quad.object.value)
                if terms.class_graph(fact.access_class).value == graph.value:
                    yield fact

    def _is_whole(self, key: FactKey, fact: Fact) -> bool:
        there = set(self._quads(key[0], None, None, key[1]))
        return there == {_quad(quad) for quad in terms.fact_node(fact)}


def _term(term: Iri | Typed) -> Any:
    if isinstance(term, Iri):
        return ox.NamedNode(term.value)
    return ox.Literal(term.value, datatype=ox.NamedNode(term.datatype))


def read_term(term: Any) -> Iri | Typed:
    """Return the library's IRI or literal as ours."""
    return Iri(term.value) if isinstance(term, ox.NamedNode) else Typed(term.value, term.datatype.value)


def _n3(quad: Any) -> tuple[str, str, str]:
    return read_term(quad.subject).n3(), read_term(quad.predicate).n3(), read_term(quad.object).n3()


def _quad(quad: QuadTerms) -> ox.Quad:
    return ox.Quad(_term(quad.subject), _term(quad.predicate), _term(quad.object), _term(quad.graph))


def _named(node: Node, name: str) -> Node:
    return node if isinstance(node, DocumentRef) else EntityRef(node.family, node.key, name)


def _name_triples(quads: Iterable[Any]) -> list[NameTriple]:
    return [
        NameTriple(quad.graph_name.value, quad.subject.value, quad.predicate.value, quad.object.value)
        for quad in quads
        if quad.predicate in _NAME_PREDICATES and isinstance(quad.object, ox.Literal)
    ]


def _removal(facts: Sequence[FactKey], triples: Sequence[ox.Quad]) -> str:
    """Return the update that removes fact nodes and triples; the library writes out the terms."""
    if not facts:
        return ""
    rows = " ".join(f"({graph} {subject})" for subject, graph in facts)
    data = "\n".join(f"GRAPH {t.graph_name} {{ {t.subject} {t.predicate} {t.object} }}" for t in triples)
    nodes = f"DELETE {{ GRAPH ?g {{ ?f ?p ?o }} }} WHERE {{ VALUES (?g ?f) {{ {rows} }} GRAPH ?g {{ ?f ?p ?o }} }} ;\n"
    return nodes + (f"DELETE DATA {{ {data} }} ;\n" if data else "")


def _new_revision(revision: int) -> str:
    quad = terms.revision_quad(revision)
    triple = f"{quad.subject.n3()} {quad.predicate.n3()}"
    graph = f"GRAPH {quad.graph.n3()}"
    return (
        f"DELETE WHERE {{ {graph} {{ {triple} ?old }} }} ;\nINSERT DATA {{ {graph} {{ {triple} {quad.object.n3()} }} }}"
    )
