"""Deterministic IRIs: the same statement of the same version has the same name on every machine."""

import hashlib
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from schemas.document import Document
from schemas.knowledge import DocumentRef, Fact, FactDraft, LiteralValue, Node, Term

V = "urn:shinsen:v:"
XSD = "http://www.w3.org/2001/XMLSchema#"
CLASS = "class"
"""`LiteralValue.datatype` of the object of a `type` fact: no literal, but the class `urn:shinsen:v:<value>`."""

_WELL_KNOWN = {
    "type": "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    "label": "http://www.w3.org/2000/01/rdf-schema#label",
    "alias": "http://www.w3.org/2004/02/skos/core#altLabel",
    "same_as": "http://www.w3.org/2002/07/owl#sameAs",
}
_LOCAL_OF = {iri: local for local, iri in _WELL_KNOWN.items()}


def predicate_iri(local: str) -> str:
    """Return the IRI of a predicate: RDF, RDFS, SKOS or OWL for the four well-known ones, else in `urn:shinsen:v:`."""
    return _WELL_KNOWN.get(local) or V + local


def predicate_name(iri: str) -> str:
    """Return the local name that `predicate_iri` was given."""
    return _LOCAL_OF.get(iri) or iri.removeprefix(V)


def entity_iri(family: str, key: str) -> str:
    """Return `urn:shinsen:entity:<family>:<16 hex>`, from family and normalized key alone."""
    return f"urn:shinsen:entity:{quote(family, safe='')}:{_digest([family, key])[:16]}"


def document_iri(key: str) -> str:
    """Return `urn:shinsen:document:<key>`, percent-encoded but for the slashes."""
    return "urn:shinsen:document:" + quote(key, safe="/")


def node_iri(node: Node) -> str:
    """Return the IRI of an entity or a document."""
    return document_iri(node.key) if isinstance(node, DocumentRef) else entity_iri(node.family, node.key)


def term_iri(term: Term) -> str | None:
    """Return the IRI of an object: an entity, a document or a class; None for a literal."""
    if isinstance(term, LiteralValue):
        return V + term.value if term.datatype == CLASS else None
    return node_iri(term)


def datatype_iri(literal: LiteralValue) -> str:
    """Return the XSD datatype of a literal."""
    return XSD + literal.datatype


def bind_facts(drafts: Sequence[FactDraft], document: Document, version: str, observed_at: str) -> list[Fact]:
    """Turn drafts into the facts of one version of a document, ordered by IRI, without doubles.

    `version` is the facts version that the manifest will name, `observed_at` the version's source time.
    The access class is that of the document's rule met with the draft's own.
    """
    own_class = document.access.access_class()
    facts: dict[str, Fact] = {}
    for draft in drafts:
        access = document.access.met(draft.access).access_class() if draft.access else own_class
        fact = Fact(
            iri="",
            subject=draft.subject,
            predicate=draft.predicate,
            object=draft.object,
            document=document.key,
            facts_version=version,
            method=draft.method,
            confidence=draft.confidence,
            chunk_id=draft.chunk_id,
            span=draft.span,
            access_class=access,
            observed_at=observed_at,
        )
        iri = fact_iri(fact)
        facts.setdefault(iri, msgspec.structs.replace(fact, iri=iri))
    return [facts[iri] for iri in sorted(facts)]


def fact_iri(fact: Fact) -> str:
    """Return `urn:shinsen:fact:<32 hex>`: the hash of everything but `iri` and `observed_at`."""
    parts = [
        node_iri(fact.subject),
        predicate_iri(fact.predicate),
        _identity(fact.object),
        fact.document,
        fact.facts_version,
        fact.method,
        repr(fact.confidence),
        fact.chunk_id,
        fact.span,
        fact.access_class,
    ]
    return "urn:shinsen:fact:" + _digest(parts)[:32]


def _identity(term: Term) -> list[str]:
    if isinstance(term, LiteralValue):
        return [term.value, term.datatype]
    return [node_iri(term)]


def _digest(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
