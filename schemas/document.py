"""A document, its chunks, what analysis found in them, and the manifest that makes them visible."""

from typing import Any, Literal

import msgspec

from schemas.access import AccessRule
from schemas.knowledge import FactDraft, Mention

Stage = Literal["text", "full"]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a mapping makes of a record."""

    key: str
    """`source/collection/key`."""
    title: str
    body: str
    """The composed text; all spans are character offsets (code points) into it."""
    type: str
    updated_at: str
    """RFC 3339 UTC: the record's own time, else the event's."""
    access: AccessRule
    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    """Decoded, filterable values: str, int, float, bool, ISO date or time, or a list of str."""
    restricted_fields: dict[str, AccessRule] = msgspec.field(default_factory=dict)
    """Fields that ask for more than the document does."""
    facts: tuple[FactDraft, ...] = ()
    """Facts from mapped columns."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A passage: `text == document.body[start:end]`, exactly."""

    id: str
    """Holds the hash of (document key, title, headings, text): an unchanged chunk keeps its id."""
    document: str
    ordinal: int
    start: int
    end: int
    text: str
    headings: tuple[str, ...] = ()
    """The headings above it, outermost first."""


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """What the analyzer found in one text; a pure function of (text, analyzer version)."""

    terms: tuple[str, ...]
    """Index terms in reading order: identifiers as one term, content words normalized."""
    bigrams: tuple[str, ...]
    """Character bigrams of the text in the form of name keys: they hold those of every name in it."""
    identifiers: tuple[str, ...]
    """Normalized identifiers (`f-17`, `abc-1234-x`)."""
    mentions: tuple[Mention, ...] = ()
    """Candidate mentions with spans in the text; empty at the `text` stage except identifiers."""


class Token(msgspec.Struct, frozen=True, array_like=True):
    """A term with its span in the text that was given."""

    start: int
    end: int
    term: str
    kind: str
    """`identifier`, `value`, `number`, `word`, `compound` of two verbs, `part` of a word of the own dictionary, or
    `inside` of the number of a document."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A question that says one of its words by a synonym."""

    terms: tuple[str, ...]
    """Each once, in reading order."""
    bigrams: tuple[str, ...]
    """Pairs of characters, as an analysis has them."""
    weight: float
    """Of the synonym, above 0 and at most 1: how far it says the same."""


class QueryForm(msgspec.Struct, frozen=True, kw_only=True):
    """What a lexical index is asked for a question; a pure function of (text, analyzer version)."""

    terms: tuple[str, ...]
    """Terms that count in full, each once, in reading order."""
    synonyms: tuple[tuple[str, float], ...] = ()
    """Terms that count with a weight below 1."""
    variants: tuple[Variant, ...] = ()
    """The question with one of its words said by a synonym, surest first."""
    runs: tuple[tuple[str, ...], ...] = ()
    """Bigrams of each word that no dictionary knows: a text that holds all of one's may hold it."""
    names: tuple[str, ...] = ()
    """Terms that are proper nouns."""
    spelled: tuple[tuple[str, str], ...] = ()
    """Terms with what stands for them in the question, folded, where that is something else."""


class AnalyzedText(msgspec.Struct, frozen=True):
    """A question's text, analyzed as a document's and as what an index is asked."""

    analysis: Analysis
    form: QueryForm


class IndexedChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk as a chunk index keeps it."""

    id: str
    document: str
    text: str
    title: str
    headings: tuple[str, ...]
    analysis: Analysis
    title_terms: tuple[str, ...]
    """Terms of title and headings."""
    vector: bytes | None
    """Little-endian float32, unit length; None at the `text` stage."""
    vector_model: str
    """Empty without a vector."""
    sentence_vectors: bytes = b""
    """Of its sentences by the same model, one behind the other, int8 (`pipeline.steps.sentence_vectors`); empty where
    the chunk is one sentence, or without a vector. They come and go with it."""
    access_class: str
    source: str
    collection: str
    type: str
    updated_at: str
    fields: dict[str, Any] = msgspec.field(default_factory=dict)


class ChunkRef(msgspec.Struct, frozen=True, array_like=True):
    """A live chunk in a manifest: id and offsets in the body."""

    id: str
    start: int
    end: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The only commit point of a document in one generation, replaced by compare-and-set on the position."""

    document: str
    op: Literal["upsert", "delete"]
    position: str
    version: str
    """As people see it."""
    stage: Stage
    title: str = ""
    type: str = ""
    updated_at: str = ""
    access: AccessRule = AccessRule()
    chunks: tuple[ChunkRef, ...] = ()
    facts_version: str = ""
    """Only fact nodes of this version are live. Changes with the position, stage and links."""
    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    restricted_fields: dict[str, AccessRule] = msgspec.field(default_factory=dict)
