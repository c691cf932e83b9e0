"""Reading facts and names from a SPARQL server."""

import sys
from collections.abc import Mapping, Sequence

import msgspec

from pipeline.backends import graph_terms as terms
from pipeline.backends.graph_sparql_client import Row, SparqlClient
from pipeline.backends.graph_sparql_space import HAS_GRAPH, Space
from pipeline.backends.graph_terms import Iri, Typed
from pipeline.steps.iris import node_iri
from schemas.knowledge import ALIAS, LABEL, DocumentRef, EntityRef, Fact, Node

NODES_PER_QUERY = 50
DOCUMENTS_PER_QUERY = 50
ROWS_PER_QUERY = 1_000
"""Documents of which only it is asked whether they have facts."""
NAMES = 5_000
"""Names that one search looks at, shortest first."""
_SUBJECT, _PREDICATE, _OBJECT = (Iri(name).n3() for name in (terms.SUBJECT, terms.PREDICATE, terms.OBJECT))
_DOCUMENT, _RECORD, _STATEMENT = (Iri(name).n3() for name in (terms.DOCUMENT, terms.RECORD, terms.STATEMENT))
_VERSION = Iri(terms.FACTS_VERSION).n3()
_NAMING = " ".join(terms.predicate_term(name).n3() for name in (LABEL, ALIAS))


def _folds_otherwise() -> str:
    """Return the characters whose case folding is not what a server's LCASE makes of them (ß, ς, ligatures)."""
    every = map(chr, (*range(0xD800), *range(0xE000, sys.maxunicode + 1)))
    return "Σ" + "".join(c for c in every if c.casefold() != c.lower() or len(c.lower()) > 1)


class FactReader:
    """Reads one space. Class graphs are named as the server does."""

    def __init__(self, client: SparqlClient, space: Space) -> None:
        self._client, self._space = client, space
        self._odd = ""

    async def class_graphs(self) -> list[str]:
        """Return the class graphs of this space that were ever written to."""
        space = self._space
        rows = await self._client.select(
            f"SELECT ?g {{ GRAPH {space.meta.n3()} {{ {space.name.n3()} {HAS_GRAPH.n3()} ?g }} }} ORDER BY ?g"
        )
        return [row["g"].value for row in rows]

    async def facts_about(self, nodes: Sequence[Node], classes: Sequence[str] | None, limit: int) -> list[Fact]:
        """Return facts with one of the nodes as subject or object, ordered by IRI."""
        named = list(dict.fromkeys(terms.iri(node_iri(node)).n3() for node in nodes))
        found: dict[tuple[str, str], Fact] = {}
        for start in range(0, len(named) if limit > 0 else 0, NODES_PER_QUERY):
            some = [
                f"{{ GRAPH ?g {{ ?fact {predicate} {node} ; {_RECORD} ?record }} }}"
                for node in named[start : start + NODES_PER_QUERY]
                for predicate in (_SUBJECT, _OBJECT)
            ]
            found.update(await self._facts(" UNION ".join(some), classes, f"ORDER BY ?fact LIMIT {int(limit)}"))
        return _ordered(found)[: max(limit, 0)]

    async def facts_of(self, documents: Sequence[str]) -> list[Fact]:
        """Return all facts of these documents, ordered by IRI."""
        named = [terms.document_term(document).n3() for document in dict.fromkeys(documents)]
        found: dict[tuple[str, str], Fact] = {}
        for start in range(0, len(named), DOCUMENTS_PER_QUERY):
            some = [
                f"{{ GRAPH ?g {{ ?fact {_DOCUMENT} {document} ; {_RECORD} ?record }} }}"
                for document in named[start : start + DOCUMENTS_PER_QUERY]
            ]
            found.update(await self._facts(" UNION ".join(some), None, ""))
        return _ordered(found)

    async def missing(self, versions: Mapping[str, str]) -> set[str]:
        """Return the documents of which no fact of the version given stands."""
        asked = {terms.document_term(document).value: document for document in versions}
        rows = [f"{Iri(name).n3()} {Typed(versions[document]).n3()}" for name, document in asked.items()]
        # Nested, so that a document's own facts are looked at: servers may begin with all facts of the version.
        of_version = f"{_DOCUMENT} ?document FILTER EXISTS {{ ?fact {_VERSION} ?version }}"
        there = await self._with_facts(rows, "?document ?version", of_version)
        return {document for name, document in asked.items() if name not in there}

    async def held(self, documents: Sequence[str]) -> set[str]:
        """Return the documents of which a fact stands."""
        asked = {terms.document_term(document).value: document for document in documents}
        rows = [Iri(name).n3() for name in asked]
        return {asked[name] for name in await self._with_facts(rows, "?document", f"{_DOCUMENT} ?document")}

    async def _with_facts(self, rows: Sequence[str], names: str, properties: str) -> set[str]:
        """Return `?document` of the rows for which a fact with these properties stands; one each is looked for, not
        all: of 22 facts a document that takes a fifth of the time."""
        found: set[str] = set()
        for start in range(0, len(rows), ROWS_PER_QUERY):
            values = " ".join(f"({row})" for row in rows[start : start + ROWS_PER_QUERY])
            there = await self._client.select(
                f"SELECT ?document {{ VALUES ({names}) {{ {values} }}"
                f" FILTER EXISTS {{ GRAPH ?g {{ ?fact {properties} }} {self._space.within} }} }}"
            )
            found.update(row["document"].value for row in there)
        return found

    async def _facts(self, pattern: str, classes: Sequence[str] | None, modifiers: str) -> dict[tuple[str, str], Fact]:
        rows = await self._client.select(
            f"SELECT DISTINCT ?g ?fact ?record {{ {pattern} {self._only(classes)} }} {modifiers}"
        )
        return {(row["fact"].value, row["g"].value): fact for row in rows if (fact := self._fact(row)) is not None}

    def _only(self, classes: Sequence[str] | None) -> str:
        """Return the condition on `?g`."""
        if classes is None:
            return self._space.within
        return f"FILTER(?g IN ({', '.join(self._space.graph(name).n3() for name in dict.fromkeys(classes))}))"

    def _fact(self, row: Row) -> Fact | None:
        """Return the row's fact; None when its record is damaged or stands in the graph of another class."""
        try:
            fact = terms.read_record(row["record"].value)
        except msgspec.DecodeError:
            return None
        return fact if self._space.graph(fact.access_class).value == row["g"].value else None

    async def find_entities(self, text: str, classes: Sequence[str] | None, limit: int) -> list[tuple[Node, str]]:
        """Return (node, name) pairs whose label or alias holds `text`, case folded, shortest name first."""
        wanted = text.casefold()
        if not self._odd:
            self._odd = _folds_otherwise()
        holds = (
            f"CONTAINS(LCASE(STR(?name)), {Typed(wanted).n3()}) || REGEX(STR(?name), {Typed(f'[{self._odd}]').n3()})"
        )
        rows = await self._client.select(
            f"SELECT ?g ?subject ?name (MIN(?one) AS ?record) {{ VALUES ?naming {{ {_NAMING} }} GRAPH ?g {{"
            f" ?fact {_PREDICATE} ?naming ; {_SUBJECT} ?subject ; {_OBJECT} ?name ; {_RECORD} ?one }}"
            f" FILTER(isLiteral(?name) && ({holds})) {self._only(classes)} }}"
            f" GROUP BY ?g ?subject ?name ORDER BY STRLEN(STR(?name)) ?name LIMIT {NAMES}"
        )
        found: dict[tuple[str, str], Fact] = {}
        for row in rows:
            name, fact = row["name"].value, self._fact(row)
            if fact is not None and wanted in name.casefold():
                found.setdefault((name, row["subject"].value), fact)
        shortest = sorted(found, key=lambda pair: (len(pair[0]), pair))[: max(limit, 0)]
        return [(_named(found[pair].subject, pair[0]), pair[0]) for pair in shortest]

    async def names(self, limit: int) -> list[tuple[str, str]]:
        """Return (entity's IRI, name) of labels and aliases of all classes."""
        rows = await self._client.select(
            f"SELECT DISTINCT ?subject ?name {{ VALUES ?naming {{ {_NAMING} }} GRAPH ?g {{ ?subject ?naming ?name }}"
            f" FILTER(STRSTARTS(STR(?subject), {Typed(terms.ENTITY_PREFIX).n3()}) && isLiteral(?name))"
            f" {self._only(None)} }} LIMIT {int(limit)}"
        )
        return [(row["subject"].value, row["name"].value) for row in rows]

    async def naming(self, names: Sequence[tuple[str, str]], classes: Sequence[str] | None, each: int) -> list[Fact]:
        """Return facts that give these names, of each label and each alias at most `each`, ordered by IRI."""
        found: dict[tuple[str, str], Fact] = {}
        only = self._only(classes)
        for start in range(0, len(names), NODES_PER_QUERY):
            some = [
                f"{{ SELECT ?g ?fact ?record {{ GRAPH ?g {{ ?fact {_STATEMENT} {statement.n3()} ; {_RECORD} ?record }}"
                f" {only} }} LIMIT {int(each)} }}"
                for subject, name in names[start : start + NODES_PER_QUERY]
                for statement in (
                    terms.statement_term(Iri(subject), terms.predicate_term(naming), Typed(name))
                    for naming in (LABEL, ALIAS)
                )
            ]
            found.update(await self._facts(" UNION ".join(some), None, ""))
        return _ordered(found)

    async def fact_keys(self) -> list[tuple[str, str]]:
        """Return (fact, graph) of all facts, ordered by IRI."""
        rows = await self._client.select(
            f"SELECT ?fact ?g {{ GRAPH ?g {{ ?fact {_RECORD} ?record }} {self._space.within} }}"
        )
        return sorted((row["fact"].value, row["g"].value) for row in rows)

    async def whole_facts(self, keys: Sequence[tuple[str, str]]) -> list[Fact]:
        """Return those facts whose nodes are exactly what they were written as, quad for quad."""
        pairs = " ".join(f"({Iri(fact).n3()} {Iri(graph).n3()})" for fact, graph in keys)
        rows = await self._client.select(
            f"SELECT ?fact ?g ?p ?o {{ VALUES (?fact ?g) {{ {pairs} }} GRAPH ?g {{ ?fact ?p ?o }} }}"
        )
        there: dict[tuple[str, str], set[tuple[str, str]]] = {}
        records: dict[tuple[str, str], Fact] = {}
        for row in rows:
            key = (row["fact"].value, row["g"].value)
            there.setdefault(key, set()).add((row["p"].value, row["o"].n3()))
            if row["p"].value == terms.RECORD:
                fact = self._fact({**row, "record": row["o"]})
                if fact is not None:
                    records[key] = fact
        return [records[key] for key in keys if key in records and there[key] == _node(records[key])]

    async def triples(self) -> list[tuple[str, str, str, str]]:
        """Return all plain triples as (class, subject, predicate, object), ordered."""
        facts = Typed(terms.FACT_PREFIX).n3()
        found = []
        for graph in await self.class_graphs():
            rows = await self._client.select(
                f"SELECT ?s ?p ?o {{ GRAPH {Iri(graph).n3()} {{ ?s ?p ?o }} FILTER(!STRSTARTS(STR(?s), {facts})) }}"
            )
            name = self._space.outer(graph).removeprefix(terms.CLASS_GRAPH_PREFIX)
            found += [(name, row["s"].n3(), row["p"].n3(), row["o"].n3()) for row in rows]
        return sorted(found)


def _ordered(found: dict[tuple[str, str], Fact]) -> list[Fact]:
    return [found[key] for key in sorted(found)]


def _node(fact: Fact) -> set[tuple[str, str]]:
    return {(quad.predicate.value, quad.object.n3()) for quad in terms.fact_node(fact)}


def _named(node: Node, name: str) -> Node:
    return node if isinstance(node, DocumentRef) else EntityRef(node.family, node.key, name)
