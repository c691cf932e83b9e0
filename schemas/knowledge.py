"""Mentions, entities and facts."""

from typing import Literal

import msgspec

from schemas.access import AccessRule

Method = Literal["column", "pattern", "identifier", "name", "ner"]

IS_A, APPLIES_TO, MENTIONS, DESCRIBES, SAME_AS = "is_a", "applies_to", "mentions", "describes", "same_as"
TYPE, LABEL, ALIAS = "type", "label", "alias"
"""Predicates that the product itself knows; mappings and ontologies add others by local name."""


class Mention(msgspec.Struct, frozen=True, array_like=True):
    """A span of a text that may name an entity; offsets in that text."""

    start: int
    end: int
    surface: str
    family: str
    """Type family: `id` for identifiers, else `person`, `organization`, `place`, `concept`, ..."""
    key: str
    """Normalized name: with the family it makes the entity's IRI."""
    method: Method
    confidence: float


class EntityRef(msgspec.Struct, frozen=True, array_like=True, tag="entity"):
    """An entity at mention level: (type family, normalized key) and the surface it was read from."""

    family: str
    key: str
    surface: str


class DocumentRef(msgspec.Struct, frozen=True, array_like=True, tag="document"):
    """A document as a node of the graph."""

    key: str


class LiteralValue(msgspec.Struct, frozen=True, array_like=True, tag="literal"):
    """A literal: its lexical form and XSD datatype local name (`string`, `decimal`, `date`, ...)."""

    value: str
    datatype: str = "string"


Node = EntityRef | DocumentRef
Term = EntityRef | DocumentRef | LiteralValue


class FactDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A statement with its evidence, before document, version and class are known to the store."""

    subject: Node
    predicate: str
    """Local name in `urn:shinsen:v:`; `type`, `label`, `alias`, `same_as` map to RDF, RDFS, SKOS, OWL."""
    object: Term
    method: Method
    confidence: float = 1.0
    chunk_id: str = ""
    span: tuple[int, int] | None = None
    """Offsets in the document's body, for facts read from text."""
    access: AccessRule | None = None
    """The column's rule, when narrower than the document's."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as the graph keeps it: the plain triple and its fact node."""

    iri: str
    """Deterministic: hash of everything below but `observed_at`."""
    subject: Node
    predicate: str
    object: Term
    document: str
    facts_version: str
    method: Method
    confidence: float
    chunk_id: str
    span: tuple[int, int] | None
    access_class: str
    observed_at: str
    """Source time of the document's version."""
