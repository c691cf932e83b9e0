"""Facts from mapped columns: what a record is about, its names, and its relations and values."""

from collections.abc import Iterator

from pipeline.mapping.check import is_local_name
from pipeline.mapping.row import Row
from pipeline.steps.iris import CLASS
from pipeline.steps.vocabulary import Vocabulary
from pipeline.text.normalize import name_key
from schemas.access import AccessRule
from schemas.knowledge import (
    ALIAS,
    DESCRIBES,
    LABEL,
    SAME_AS,
    TYPE,
    DocumentRef,
    EntityRef,
    FactDraft,
    LiteralValue,
    Node,
    Term,
)
from schemas.mapping import EntitySpec, FactSpec, NameSpec, ObjectSpec

MAX_NAME = 300
"""Characters of an entity's name; a longer text names nothing."""
MAX_NAME_BYTES = 600
"""Of its normalized form in UTF-8: 200 kanji. It must fit into a row of an index, beside the document's key."""


def column_facts(row: Row, title: str, kind: str, vocabulary: Vocabulary) -> list[FactDraft]:
    """Return the facts of a record's mapped columns, each once, in the order of the mapping.

    The document itself has a `label` (its title) and, when its type can be a class's name, a `type`.
    Its entity is `describes`d, with `type`, `label`, `alias`, and a `same_as` to the entity that each
    alias would be by itself: texts and other sources name it so, and whoever may not read this record
    does not see the tie. Objects get type and label.
    """
    document = DocumentRef(row.record.document)
    drafts = [_draft(document, LABEL, LiteralValue(title))]
    if is_local_name(kind):
        drafts.append(_draft(document, TYPE, LiteralValue(kind, CLASS)))
    entity: EntityRef | None = None
    if spec := row.mapping.entity:
        entity = next(iter(_entities(row, ObjectSpec(spec.column, spec.type), vocabulary)), None)
        if entity:
            drafts += _entity_facts(row, document, entity, spec, vocabulary)
    for fact in row.mapping.facts:
        drafts += _fact(row, fact, document, entity, vocabulary)
    return list(dict.fromkeys(drafts))


def _entity_facts(
    row: Row, document: DocumentRef, entity: EntityRef, spec: EntitySpec, vocabulary: Vocabulary
) -> Iterator[FactDraft]:
    yield _draft(document, DESCRIBES, entity)
    yield from _naming(entity, spec.type, None)
    for label in _names(row, spec.labels):
        yield _draft(entity, LABEL, LiteralValue(label))
    for alias in _names(row, spec.aliases):
        yield _draft(entity, ALIAS, LiteralValue(alias))
        other = vocabulary.entity(spec.type, alias)
        if other and (other.family, other.key) != (entity.family, entity.key):
            yield _draft(entity, SAME_AS, other)
            yield from _naming(other, spec.type, None)


def _names(row: Row, specs: tuple[str | NameSpec, ...]) -> list[str]:
    named = [NameSpec(spec) if isinstance(spec, str) else spec for spec in specs]
    return [_checked(row, spec.column, name) for spec in named for name in row.names(spec.column, spec.split)]


def _fact(
    row: Row, spec: FactSpec, document: DocumentRef, entity: EntityRef | None, vocabulary: Vocabulary
) -> Iterator[FactDraft]:
    access = row.access(spec.acl) if spec.acl else None
    subjects: list[Node] = []
    if isinstance(spec.subject, ObjectSpec):
        named = _entities(row, spec.subject, vocabulary)
        subjects += named
        for one in named:
            yield from _naming(one, spec.subject.type, access)
    elif spec.subject == "document" or (spec.subject is None and row.mapping.entity is None):
        subjects.append(document)
    elif entity:
        subjects.append(entity)
    if not subjects:
        return
    for term in _objects(row, spec, vocabulary):
        for subject in subjects:
            yield _draft(subject, spec.predicate, term, access)
        if isinstance(term, EntityRef) and spec.object:
            yield from _naming(term, spec.object.type, access)


def _objects(row: Row, spec: FactSpec, vocabulary: Vocabulary) -> list[Term]:
    if spec.object:
        return [*_entities(row, spec.object, vocabulary)]
    return [*row.literal(spec.literal.column, spec.literal.type)] if spec.literal else []


def _entities(row: Row, spec: ObjectSpec, vocabulary: Vocabulary) -> list[EntityRef]:
    names = [_checked(row, spec.column, name) for name in row.names(spec.column, spec.split)]
    return [found for name in names if (found := vocabulary.entity(spec.type, name))]


def _checked(row: Row, column: str, name: str) -> str:
    if len(name) > MAX_NAME:
        raise row.wrong(column, f"a name has at most {MAX_NAME} characters; is this a text column, or 'split' missing?")
    if (size := len(name_key(name).encode("utf-8", "surrogatepass"))) > MAX_NAME_BYTES:
        raise row.wrong(column, f"a name has at most {MAX_NAME_BYTES} bytes when it is normalized, this has {size}")
    return name


def _naming(entity: EntityRef, kind: str, access: AccessRule | None) -> Iterator[FactDraft]:
    yield _draft(entity, TYPE, LiteralValue(kind, CLASS), access)
    yield _draft(entity, LABEL, LiteralValue(entity.surface), access)


def _draft(subject: Node, predicate: str, term: Term, access: AccessRule | None = None) -> FactDraft:
    return FactDraft(subject=subject, predicate=predicate, object=term, method="column", access=access)
