"""What can be wrong in a mapping beside its shape."""

import re
from collections.abc import Iterator

from pipeline.mapping.templates import columns_of
from schemas.mapping import AccessSpec, BodyPart, EntitySpec, FactSpec, Mapping, NameSpec, ObjectSpec, TypeSpec

Problem = tuple[tuple[str | int, ...], str]
"""Place in the file and a sentence."""

MAX_FIELDS = 200
_LOCAL_NAME = re.compile(r"[^\W\d][\w-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def problems(mapping: Mapping) -> Iterator[Problem]:
    """Yield what is wrong, in the order of the file's parts; nothing for a good mapping."""
    yield from _names(mapping)
    broken = list(_text(mapping))
    yield from broken
    yield from _columns(mapping)
    yield from _access(mapping)
    yield from _facts(mapping)
    if not broken:
        yield from _leaks(mapping)


def restricted_columns(mapping: Mapping) -> dict[str, AccessSpec]:
    """Return the columns that a field or fact guards with an ACL of its own."""
    guarded = {spec.column or name: spec.acl for name, spec in mapping.fields.items() if spec.acl}
    for fact in mapping.facts:
        if fact.acl and (part := fact.object or fact.literal):
            guarded[part.column] = fact.acl
    return guarded


def is_local_name(name: str) -> bool:
    """Say whether a text can name a class or predicate: a letter, then letters, digits, "_" or "-"."""
    return bool(_LOCAL_NAME.fullmatch(name))


def part_columns(part: str | BodyPart) -> tuple[str, ...]:
    """Return the columns of a part of the body."""
    if isinstance(part, str):
        return columns_of(part)
    return (part.column,) if part.column else columns_of(part.template or "")


def _names(mapping: Mapping) -> Iterator[Problem]:
    for place, name in (("source", mapping.source), ("collection", mapping.collection)):
        if not 1 <= len(name) <= 100 or "/" in name or _CONTROL.search(name):
            yield (place,), f"{name!r} must have 1 to 100 characters without '/' and control characters"
    if len(mapping.fields) > MAX_FIELDS:
        yield ("fields",), f"{len(mapping.fields)} fields are more than {MAX_FIELDS}"
    yield from _local_name(("type",), mapping.type.default if isinstance(mapping.type, TypeSpec) else mapping.type)
    if mapping.entity:
        yield from _local_name(("entity", "type"), mapping.entity.type)


def _local_name(where: tuple[str | int, ...], name: str) -> Iterator[Problem]:
    if not is_local_name(name):
        yield where, f"{name!r} must be a local name: a letter, then letters, digits, '_' or '-'"


def _text(mapping: Mapping) -> Iterator[Problem]:
    templates: list[tuple[tuple[str | int, ...], str]] = [(("title",), mapping.title)]
    for number, part in enumerate(mapping.body):
        if isinstance(part, str):
            templates.append((("body", number), part))
        elif (part.template is None) == (part.column is None):
            yield ("body", number), "needs one of 'template' and 'column'"
        elif part.template is not None:
            templates.append((("body", number, "template"), part.template))
    for where, template in templates:
        try:
            columns_of(template)
        except ValueError as error:
            yield where, str(error)


def _columns(mapping: Mapping) -> Iterator[Problem]:
    for name, rule in mapping.columns.items():
        if rule.scale is not None and (rule.type != "decimal" or not 0 <= rule.scale <= 100):
            yield ("columns", name, "scale"), "belongs to decimals and lies between 0 and 100"
    for place, listed in (("key", mapping.key), ("required", mapping.required)):
        if "" in listed or len(set(listed)) < len(listed):
            yield (place,), "names a column twice, or an empty name"
    if mapping.position and mapping.position.rule == "none" and mapping.position.column:
        yield ("position",), "rule 'none' reads no column: leave out one of the two"


def _access(mapping: Mapping) -> Iterator[Problem]:
    specs: list[tuple[tuple[str | int, ...], AccessSpec | None]] = [(("acl",), mapping.acl)]
    specs += [(("fields", name, "acl"), spec.acl) for name, spec in mapping.fields.items()]
    specs += [(("facts", number, "acl"), fact.acl) for number, fact in enumerate(mapping.facts)]
    for where, spec in specs:
        groups = (*spec.allow, *spec.deny, *spec.default) if spec else ()
        if any(not group.strip() or group.strip() in ("*", "!") for group in groups):
            yield where, "a group needs a name; 'public' is everybody, '*' is no group of documents"
        elif spec and where != ("acl",) and not (spec.allow or spec.deny or spec.column):
            yield where, "names no group"


def _facts(mapping: Mapping) -> Iterator[Problem]:
    for number, fact in enumerate(mapping.facts):
        where = ("facts", number)
        yield from _local_name((*where, "predicate"), fact.predicate)
        if (fact.object is None) == (fact.literal is None):
            yield where, "needs one of 'object' and 'literal'"
        if fact.subject == "entity" and mapping.entity is None:
            yield (*where, "subject"), "the mapping has no 'entity' that could be the subject"
        for place, spec in (("object", fact.object), ("subject", fact.subject)):
            if isinstance(spec, ObjectSpec):
                yield from _local_name((*where, place, "type"), spec.type)


def _leaks(mapping: Mapping) -> Iterator[Problem]:
    """A column guarded in one place and open in another would be read through the open one."""
    guarded = restricted_columns(mapping)
    for where, column in _open_uses(mapping):
        if column in guarded:
            yield where, f"column {column!r} has an acl of its own, but would be read here without it"


def _open_uses(mapping: Mapping) -> Iterator[tuple[tuple[str | int, ...], str]]:
    yield from ((("title",), column) for column in columns_of(mapping.title))
    for number, part in enumerate(mapping.body):
        yield from ((("body", number), column) for column in part_columns(part))
    yield from ((("key",), column) for column in mapping.key)
    if isinstance(mapping.type, TypeSpec):
        yield ("type",), mapping.type.column
    if mapping.entity:
        yield from _entity_uses(mapping.entity)
    for name, spec in mapping.fields.items():
        if spec.acl is None:
            yield ("fields", name), spec.column or name
    for number, fact in enumerate(mapping.facts):
        yield from _fact_uses(number, fact)


def _entity_uses(entity: EntitySpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    yield ("entity", "column"), entity.column
    for place, names in (("labels", entity.labels), ("aliases", entity.aliases)):
        for number, name in enumerate(names):
            yield ("entity", place, number), name.column if isinstance(name, NameSpec) else name


def _fact_uses(number: int, fact: FactSpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    part = fact.object or fact.literal
    if fact.acl is None and part:
        yield ("facts", number), part.column
    if isinstance(fact.subject, ObjectSpec) and fact.acl is None:
        yield ("facts", number, "subject"), fact.subject.column
