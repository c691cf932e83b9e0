"""Facts from text: what a document mentions, and what its sentences state by the patterns.

A pure function of (document, chunks, analyses, patterns, set of declared names): the order in which
documents arrived plays no part.
"""

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from pipeline.ports.state import DeclaredName
from pipeline.steps.iris import CLASS
from pipeline.steps.name_index import NameIndex
from pipeline.steps.relations import Relation, Relations, load_relations
from pipeline.steps.vocabulary import Vocabulary, default_vocabulary
from pipeline.text.normalize import fold, source_span
from schemas.document import Analysis, Chunk, Document
from schemas.knowledge import (
    DESCRIBES,
    LABEL,
    MENTIONS,
    SAME_AS,
    TYPE,
    DocumentRef,
    EntityRef,
    FactDraft,
    LiteralValue,
    Method,
    Node,
    Term,
)

__all__ = ["NameIndex", "TextFacts", "declared_names", "facts_from_text", "load_relations"]

CODE_VERSION = "1"
"""Raise it when the same text would give other facts."""
NAME_CONFIDENCE = 0.9
KIND = "Concept"
"""Class of an object for which its pattern names none."""

_LIST = re.compile("、|・|および|及び|ならびに|並びに|または|又は")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_FIRST_ID, _FIRST_NAME, _PER_RANGE = 0xE000, 0xF000, 0x0900


class _Spotted(msgspec.Struct, frozen=True):
    """An entity in a chunk: its span in the folded text, and in the chunk's text."""

    start: int
    end: int
    span: tuple[int, int]
    entity: EntityRef
    method: Method
    confidence: float


class TextFacts:
    """Reads facts from chunks, with one set of patterns and one vocabulary. Immutable."""

    def __init__(self, relations: Relations, vocabulary: Vocabulary) -> None:
        """Take the relation patterns and the vocabulary."""
        self.relations, self.vocabulary = relations, vocabulary

    @property
    def version(self) -> str:
        """16 hex digits that change when the same text would give other facts."""
        parts = [
            CODE_VERSION,
            self.relations.version,
            self.vocabulary.identifiers.version,
            sorted(self.vocabulary.families.items()),
        ]
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]

    def find(
        self, document: Document, chunks: Sequence[Chunk], analyses: Sequence[Analysis], names: NameIndex
    ) -> list[FactDraft]:
        """Return the facts of a document's text in reading order, each (subject, predicate, object) once per chunk.

        `mentions` (document → entity; methods identifier, name, ner) with one `label` for each entity,
        and the relations of the patterns. Spans are offsets in the document's body.
        """
        labelled: set[Term] = set()
        found: dict[tuple[object, ...], FactDraft] = {}
        for chunk, analysis in zip(chunks, analyses, strict=True):
            for draft in self._chunk(document, chunk, analysis, names, labelled):
                found.setdefault((_same(draft.subject), draft.predicate, _same(draft.object), draft.chunk_id), draft)
        return list(found.values())

    def _chunk(
        self, document: Document, chunk: Chunk, analysis: Analysis, names: NameIndex, labelled: set[Term]
    ) -> Iterator[FactDraft]:
        folded, offsets = fold(chunk.text)
        spotted = _spotted(chunk.text, folded, offsets, analysis, names)
        ref = DocumentRef(document.key)
        for one in spotted:
            yield _draft(chunk, ref, MENTIONS, one.entity, one.method, one.confidence, one.span)
            yield from _label(chunk, one.entity, one.method, one.confidence, one.span, labelled)
        views = _Views(folded, offsets, spotted)
        for relation in self.relations.all:
            yield from self._relation(relation, chunk, ref, views, labelled)

    def _relation(
        self, relation: Relation, chunk: Chunk, ref: DocumentRef, views: "_Views", labelled: set[Term]
    ) -> Iterator[FactDraft]:
        spec = relation.spec
        text = views.masked if "{known}" in spec.pattern or "{id}" in spec.pattern else views.folded
        for match in relation.compiled.finditer(text):
            subject: Node | None = ref
            if "subject" in relation.compiled.groupindex:
                subject = self._entity(match.span("subject"), text, views, chunk, spec.subject_type)
            if subject is None:
                continue
            span = views.source(text, *match.span())
            for part in _parts(match):
                term = self._entity(part, text, views, chunk, spec.object_type)
                if term is None or _same(term) == _same(subject):
                    continue
                yield _draft(chunk, subject, spec.predicate, term, "pattern", spec.confidence, span)
                own = views.source(text, *part)
                yield from _label(chunk, term, "pattern", spec.confidence, own, labelled)
                if spec.object_type:
                    kind = LiteralValue(spec.object_type, CLASS)
                    yield _draft(chunk, term, TYPE, kind, "pattern", spec.confidence, own)

    def _entity(
        self, span: tuple[int, int], text: str, views: "_Views", chunk: Chunk, kind: str | None
    ) -> EntityRef | None:
        start, end = span
        if end - start == 1 and (one := views.known.get(text[start])) and text is views.masked:
            return one
        own = views.source(text, start, end)
        return self.vocabulary.entity(kind or KIND, chunk.text[slice(*own)]) if start < end else None


class _Views:
    """One chunk's text as patterns see it, and the way back to the chunk's text."""

    def __init__(self, folded: str, offsets: Sequence[int], spotted: Sequence[_Spotted]) -> None:
        self.folded, self._offsets = _PRIVATE.sub("\ufffd", folded), offsets
        self.known: dict[str, EntityRef] = {}
        self._places: list[int] = []
        self.masked = self._mask(spotted)

    def source(self, text: str, start: int, end: int) -> tuple[int, int]:
        """Carry a span of the folded or masked text back to the chunk's text."""
        if text is self.masked:
            start, end = self._places[start], self._places[end]
        return source_span(self._offsets, start, end)

    def _mask(self, spotted: Sequence[_Spotted]) -> str:
        """Put one private character for each known entity, the longest first where they overlap."""
        pieces: list[str] = []
        at = 0
        for one in _without_overlaps(spotted):
            mask = self._next_mask(one)
            pieces += [self.folded[at : one.start], mask]
            self._places += [*range(at, one.start), one.start]
            at = one.end
        self._places += range(at, len(self.folded) + 1)
        return "".join([*pieces, self.folded[at:]])

    def _next_mask(self, one: _Spotted) -> str:
        mask = chr((_FIRST_ID if one.entity.family == "id" else _FIRST_NAME) + len(self.known) % _PER_RANGE)
        self.known[mask] = one.entity
        return mask


def _without_overlaps(spotted: Sequence[_Spotted]) -> list[_Spotted]:
    """Keep identifiers and names of one meaning; where they overlap, the longest."""
    meanings = Counter((one.start, one.end) for one in spotted if one.method == "name")
    chosen: list[_Spotted] = []
    for one in sorted(spotted, key=lambda s: (s.start - s.end, s.start, s.method)):
        clear = one.method == "identifier" or (one.method == "name" and meanings[(one.start, one.end)] == 1)
        if clear and one.start < one.end and all(one.end <= c.start or c.end <= one.start for c in chosen):
            chosen.append(one)
    return sorted(chosen[:_PER_RANGE], key=lambda s: s.start)


def facts_from_text(
    document: Document,
    chunks: Sequence[Chunk],
    analyses: Sequence[Analysis],
    names: NameIndex,
    text_facts: TextFacts | None = None,
) -> list[FactDraft]:
    """Like `TextFacts.find`, with the product's own patterns and vocabulary when none are given."""
    return (text_facts or TextFacts(load_relations(), default_vocabulary())).find(document, chunks, analyses, names)


def declared_names(document: str, drafts: Sequence[FactDraft]) -> list[DeclaredName]:
    """Return the names that a record's own entity goes by, as texts may hold them, ordered.

    They are the entity's name itself, unless it is an identifier, and its aliases. Each stands for the
    entity that it would be by itself: `same_as` ties that to the record's entity, for those who may
    read the record. A label that is no alias is a description, not a name.
    """
    described = {d.object for d in drafts if d.predicate == DESCRIBES and isinstance(d.object, EntityRef)}
    found = {_declared(document, entity) for entity in described if entity.family != "id"}
    for draft in drafts:
        alias = draft.object if draft.predicate == SAME_AS and draft.subject in described else None
        if isinstance(alias, EntityRef) and alias.family != "id":
            found.add(_declared(document, alias))
    return sorted(found)


def _declared(document: str, entity: EntityRef) -> DeclaredName:
    return DeclaredName(entity.key, entity.family, entity.key, document)


def _spotted(text: str, folded: str, offsets: Sequence[int], analysis: Analysis, names: NameIndex) -> list[_Spotted]:
    """Return identifiers, declared names, and other mentions that overlap neither, in reading order."""
    found: list[_Spotted] = []
    others: list[_Spotted] = []
    for m in analysis.mentions:
        entity = EntityRef(m.family, m.key, text[m.start : m.end])
        place = bisect_left(offsets, m.start), bisect_left(offsets, m.end)
        one = _Spotted(*place, (m.start, m.end), entity, m.method, m.confidence)
        (found if m.method == "identifier" else others).append(one)
    for match in names.find_folded(folded):
        span = source_span(offsets, match.start, match.end)
        for meant in match.entities:
            entity = EntityRef(meant.family, meant.key, text[slice(*span)])
            found.append(_Spotted(match.start, match.end, span, entity, "name", NAME_CONFIDENCE))
    found += [
        o for o in others if len(o.entity.key) > 1 and not any(o.start < f.end and f.start < o.end for f in found)
    ]
    return sorted(found, key=lambda s: (s.start, s.end, s.method, s.entity))


def _parts(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    start, end = match.span("object")
    for separator in _LIST.finditer(match.string, start, end):
        yield start, separator.start()
        start = separator.end()
    yield start, end


def _same(term: Term) -> Term:
    """Return a term for comparing: entities are the same whatever surface they were read from."""
    return EntityRef(term.family, term.key, "") if isinstance(term, EntityRef) else term


def _label(
    chunk: Chunk, entity: EntityRef, method: Method, confidence: float, span: tuple[int, int], labelled: set[Term]
) -> Iterator[FactDraft]:
    name = _same(entity)
    if name not in labelled:
        labelled.add(name)
        yield _draft(chunk, entity, LABEL, LiteralValue(entity.surface), method, confidence, span)


def _draft(
    chunk: Chunk,
    subject: Node,
    predicate: str,
    term: EntityRef | LiteralValue,
    method: Method,
    confidence: float,
    span: tuple[int, int],
) -> FactDraft:
    return FactDraft(
        subject=subject,
        predicate=predicate,
        object=term,
        method=method,
        confidence=confidence,
        chunk_id=chunk.id,
        span=(chunk.start + span[0], chunk.start + span[1]),
    )
