"""One generation's graphs on a server that several generations share, and the updates that change them.

The named graph of an access class is `urn:shinsen:space:<generation>:class:<class>` here, and
`urn:shinsen:class:<class>` to those who ask. A graph of the space's own lists the class graphs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from urllib.parse import quote

from pipeline.backends import graph_terms as terms
from pipeline.backends.graph_terms import CLASS_GRAPH_PREFIX, Iri, QuadTerms, Typed
from pipeline.steps.iris import XSD, V
from schemas.knowledge import Fact

SPACE_PREFIX = "urn:shinsen:space:"
HAS_GRAPH = Iri(V + "classGraph")
_DOCUMENT, _VERSION, _STATEMENT, _SUBJECT, _PREDICATE, _OBJECT = (
    Iri(name).n3()
    for name in (
        terms.DOCUMENT,
        terms.FACTS_VERSION,
        terms.STATEMENT,
        terms.SUBJECT,
        terms.PREDICATE,
        terms.OBJECT,
    )
)
_TRIPLE = f"{_SUBJECT} ?s ; {_PREDICATE} ?p ; {_OBJECT} ?o"


class Space:
    """Names of one generation's graphs. All text it returns is built from terms, never from raw input."""

    def __init__(self, generation: str) -> None:
        self.name = Iri(SPACE_PREFIX + quote(generation, safe=""))
        self.meta = Iri(self.name.value + ":meta")
        self._classes = self.name.value + ":class:"

    @property
    def within(self) -> str:
        """The condition that `?g` is a class graph of this space."""
        return f"FILTER(STRSTARTS(STR(?g), {Typed(self._classes).n3()}))"

    def graph(self, access_class: str) -> Iri:
        """Return the named graph of an access class."""
        return self.inner(terms.class_graph(access_class))

    def inner(self, graph: Iri) -> Iri:
        """Return the graph's name on the server."""
        return Iri(self._classes + graph.value.removeprefix(CLASS_GRAPH_PREFIX))

    def outer(self, graph: str) -> str:
        """Return the graph's name to those who ask."""
        return CLASS_GRAPH_PREFIX + graph.removeprefix(self._classes)

    def asked(self, sparql: str) -> str:
        """Return somebody's query with the graphs' names of this space."""
        return sparql.replace(CLASS_GRAPH_PREFIX, self._classes)

    def answered(self, result: bytes) -> bytes:
        """Return a result with the graphs' names that people know."""
        return result.replace(self._classes.encode(), CLASS_GRAPH_PREFIX.encode())

    # ---------------------------------------------------------------- updates

    def insertion(self, facts: Sequence[Fact]) -> str:
        """Return the update that adds facts."""
        quads = [quad for fact in facts for quad in terms.fact_quads(fact)]
        graphs = sorted({self.inner(quad.graph).value for quad in quads})
        listed = " ".join(f"{self.name.n3()} {HAS_GRAPH.n3()} {Iri(graph).n3()} ." for graph in graphs)
        parts = [f"GRAPH {self.meta.n3()} {{ {listed} }}"]
        for graph, inside in _grouped(quads, lambda quad: quad.graph.value):
            triples = "\n".join(_triples(inside))
            parts.append(f"GRAPH {self.inner(Iri(graph)).n3()} {{ {triples} }}")
        return f"INSERT DATA {{ {' '.join(parts)} }}"

    def removal(self, document: str, live: str) -> str:
        """Return the update that leaves only the facts of the live version, and no triple without support.

        The triples go first: once the fact nodes are gone nothing tells which ones they supported.
        """
        dies = _dies("?fact", "?version", document, live)
        # Nested, so that ?other is bound before anything of it is looked up: in one pattern with its
        # document Oxigraph starts from all documents, for each dying fact anew. A version variable of its
        # own: writers that were killed may have left several dead versions, none of which is support.
        unsupported = (
            f"FILTER NOT EXISTS {{ ?other {_STATEMENT} ?statement"
            f" FILTER NOT EXISTS {{ {_dies('?other', '?otherVersion', document, live)} }} }}"
        )
        return (
            f"DELETE {{ GRAPH ?g {{ ?s ?p ?o }} }} WHERE {{ GRAPH ?g {{"
            f" {dies} ?fact {_STATEMENT} ?statement ; {_TRIPLE} . {unsupported} }} {self.within} }} ;\n"
            f"DELETE {{ GRAPH ?g {{ ?fact ?p ?o }} }} WHERE {{ GRAPH ?g {{"
            f" {dies} ?fact ?p ?o }} {self.within} }}"
        )

    def drop(self, graphs: Iterable[str]) -> str:
        """Return the update that removes these class graphs, and then the list of them."""
        named = [f"DROP SILENT GRAPH {Iri(graph).n3()}" for graph in graphs]
        return " ;\n".join([*named, f"DROP SILENT GRAPH {self.meta.n3()}"])


def _dies(fact: str, version: str, document: str, live: str) -> str:
    """Return the pattern of a document's facts that are not of the live version ("": all of them)."""
    lives = f" FILTER(!sameTerm({version}, {Typed(live).n3()}))" if live else ""
    return f"{fact} {_DOCUMENT} {terms.document_term(document).n3()} ; {_VERSION} {version} .{lives}"


def _grouped(quads: Iterable[QuadTerms], key: Callable[[QuadTerms], str]) -> Iterator[tuple[str, list[QuadTerms]]]:
    for name, group in groupby(sorted(quads, key=key), key=key):
        yield name, list(group)


def _triples(quads: Sequence[QuadTerms]) -> Iterator[str]:
    """Yield a block per subject, so that a fact node's name is written once."""
    for subject, group in _grouped(quads, lambda quad: quad.subject.value):
        yield Iri(subject).n3() + " " + " ; ".join(f"{q.predicate.n3()} {_as_read(q.object)}" for q in group) + " ."


def _as_read(term: Iri | Typed) -> str:
    """Return the term in the form in which Jena gives it back: its DELETE does not find `2` under `2.0`."""
    whole = isinstance(term, Typed) and term.datatype == XSD + "decimal" and "." not in term.value
    return Typed(term.value + ".0", term.datatype).n3() if isinstance(term, Typed) and whole else term.n3()
