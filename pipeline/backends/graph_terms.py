"""Facts as quads, the same ones in every graph backend; free of any RDF library.

In the named graph of its access class a fact has a plain triple and a fact node (RDF reification):
`rdf:Statement` with subject, predicate, object, and in `urn:shinsen:v:` document, factsVersion,
method, confidence, chunk, spanStart, spanEnd, observedAt. `v:statement` names the triple by one
IRI, so that all its supporters are found at once. `v:record` holds the whole fact as JSON: reading
it back is exact, whatever form a store gives to numbers and times.
"""

import hashlib
import re
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import quote

import msgspec

from pipeline.steps.iris import CLASS, XSD, V, document_iri, node_iri, predicate_iri, term_iri
from schemas.knowledge import Fact, LiteralValue, Term

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE, STATEMENT_CLASS = RDF + "type", RDF + "Statement"
SUBJECT, PREDICATE, OBJECT = RDF + "subject", RDF + "predicate", RDF + "object"
DOCUMENT, FACTS_VERSION, METHOD, CONFIDENCE = V + "document", V + "factsVersion", V + "method", V + "confidence"
CHUNK, SPAN_START, SPAN_END, OBSERVED_AT = V + "chunk", V + "spanStart", V + "spanEnd", V + "observedAt"
STATEMENT, RECORD = V + "statement", V + "record"
FACT_PREFIX, STATEMENT_PREFIX = "urn:shinsen:fact:", "urn:shinsen:statement:"
"""Subjects of fact nodes, and of nothing else, start with the first."""
ENTITY_PREFIX = "urn:shinsen:entity:"
CLASS_GRAPH_PREFIX = "urn:shinsen:class:"
META_GRAPH = META = "urn:shinsen:meta"
REVISION = V + "revision"

_NOT_IN_IRI = re.compile(r"[^\w\-.~:/%]|%(?![0-9A-Fa-f]{2})")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'[\\"\n\r\t]')


class Iri(msgspec.Struct, frozen=True):
    """An IRI; characters that no IRI may hold are percent-encoded on writing."""

    value: str

    def n3(self) -> str:
        """Return `<iri>`."""
        return f"<{self.value}>"


class Typed(msgspec.Struct, frozen=True):
    """A literal with its datatype's IRI."""

    value: str
    datatype: str = XSD + "string"

    def n3(self) -> str:
        """Return the literal in N-Triples and SPARQL form; the text cannot end it early."""
        text = '"' + _ESCAPED.sub(lambda found: _ESCAPES[found.group()], self.value) + '"'
        return text if self.datatype == XSD + "string" else f"{text}^^<{self.datatype}>"


class QuadTerms(msgspec.Struct, frozen=True):
    """A quad: IRIs, and an object that may be a literal."""

    subject: Iri
    predicate: Iri
    object: Iri | Typed
    graph: Iri

    def n_quad(self) -> str:
        """Return the line of N-Quads."""
        return f"{self.subject.n3()} {self.predicate.n3()} {self.object.n3()} {self.graph.n3()} ."


def iri(text: str) -> Iri:
    """Make an IRI of any text that starts like one."""
    return Iri(_NOT_IN_IRI.sub(lambda found: quote(found.group(), safe=""), text))


def class_graph(access_class: str) -> Iri:
    """Return the named graph of an access class."""
    return Iri(CLASS_GRAPH_PREFIX + quote(access_class, safe=""))


def document_term(document: str) -> Iri:
    """Return the IRI of a document."""
    return iri(document_iri(document))


def predicate_term(local: str) -> Iri:
    """Return the IRI of a predicate; well-known ones stand as they are, with their #."""
    text = predicate_iri(local)
    return iri(text) if text.startswith(V) else Iri(text)


def object_term(term: Term) -> Iri | Typed:
    """Return an object. Literals are written in one canonical form, so that all stores keep the same."""
    named = term_iri(term)
    if named is not None:
        return iri(named)
    assert isinstance(term, LiteralValue)
    return canonical_literal(term)


def revision_quad(revision: int) -> QuadTerms:
    """Return the quad that says how far the store has come."""
    return QuadTerms(Iri(META), Iri(REVISION), Typed(str(revision), XSD + "integer"), Iri(META_GRAPH))


def plain_triple(fact: Fact) -> QuadTerms:
    """Return the fact's triple in the graph of its class."""
    return QuadTerms(
        iri(node_iri(fact.subject)),
        predicate_term(fact.predicate),
        object_term(fact.object),
        class_graph(fact.access_class),
    )


def statement_term(subject: Iri, predicate: Iri, value: Iri | Typed) -> Iri:
    """Return the IRI that stands for a triple: the same for all facts that state it."""
    text = f"{subject.n3()} {predicate.n3()} {value.n3()}"
    return Iri(STATEMENT_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:32])


def fact_node(fact: Fact) -> list[QuadTerms]:
    """Return the quads of the fact node."""
    triple = plain_triple(fact)
    properties: dict[str, Iri | Typed] = {
        RDF_TYPE: Iri(STATEMENT_CLASS),
        SUBJECT: triple.subject,
        PREDICATE: triple.predicate,
        OBJECT: triple.object,
        STATEMENT: statement_term(triple.subject, triple.predicate, triple.object),
        DOCUMENT: document_term(fact.document),
        FACTS_VERSION: Typed(fact.facts_version),
        METHOD: Typed(fact.method),
        CONFIDENCE: canonical_literal(LiteralValue(format(Decimal(repr(fact.confidence)), "f"), "decimal")),
        OBSERVED_AT: canonical_literal(LiteralValue(fact.observed_at, "dateTime")),
        RECORD: Typed(msgspec.json.encode(fact).decode()),
    }
    if fact.chunk_id:
        properties[CHUNK] = Typed(fact.chunk_id)
    if fact.span is not None:
        properties[SPAN_START] = Typed(str(fact.span[0]), XSD + "integer")
        properties[SPAN_END] = Typed(str(fact.span[1]), XSD + "integer")
    subject = iri(fact.iri)
    if not subject.value.startswith(FACT_PREFIX):
        raise ValueError(f"a fact's IRI starts with {FACT_PREFIX}, not {fact.iri!r}")
    return [QuadTerms(subject, Iri(name), value, triple.graph) for name, value in properties.items()]


def fact_quads(fact: Fact) -> list[QuadTerms]:
    """Return all quads of a fact: the plain triple and the fact node."""
    return [plain_triple(fact), *fact_node(fact)]


def read_record(text: str) -> Fact:
    """Return the fact that a `v:record` literal holds. Raises msgspec.DecodeError on anything else."""
    return msgspec.json.decode(text, type=Fact)


def canonical_literal(literal: LiteralValue) -> Typed:
    """Return a literal in canonical form, as plain text when it has none (`abc` as integer, unknown types)."""
    if literal.datatype == CLASS:
        raise ValueError("a class is an IRI, not a literal")
    make = _CANONICAL.get(literal.datatype)
    text = make(literal.value.strip()) if make else None
    return Typed(literal.value) if text is None else Typed(text, XSD + literal.datatype)


def _boolean(text: str) -> str | None:
    return {"true": "true", "1": "true", "false": "false", "0": "false"}.get(text)


def _integer(text: str) -> str | None:
    return str(int(text)) if re.fullmatch(r"[+-]?[0-9]{1,4000}", text) else None


def _decimal(text: str) -> str | None:
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text):
        return None
    whole, _, fraction = text.lstrip("+-").partition(".")
    digits = (whole.lstrip("0") or "0") + ("." + fraction.rstrip("0") if fraction.rstrip("0") else "")
    return "-" + digits if text.startswith("-") and digits != "0" else digits


def _double(text: str) -> str | None:
    if text in ("INF", "-INF", "NaN"):
        return text
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    value = float(text)
    return None if abs(value) == float("inf") else _decimal(format(Decimal(repr(value)), "f"))


def _date(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat() if len(text) == 10 else None
    except ValueError:
        return None


def _date_time(text: str) -> str | None:
    found = re.fullmatch(r"([0-9-]{10}T[0-9:]{8})(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?", text)
    if not found:
        return None
    seconds, fraction, zone = found.group(1), (found.group(2) or "").rstrip("0").rstrip("."), found.group(3) or ""
    zone = "Z" if zone in ("+00:00", "-00:00") else zone
    try:
        datetime.fromisoformat(seconds + zone)
    except ValueError:
        return None
    return seconds + fraction + zone


_CANONICAL = {
    "boolean": _boolean,
    "integer": _integer,
    "decimal": _decimal,
    "double": _double,
    "date": _date,
    "dateTime": _date_time,
}
