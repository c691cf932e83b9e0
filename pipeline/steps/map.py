"""Map: a record becomes a document, by its collection's mapping."""

import re
from collections.abc import Iterator
from typing import Any

from pipeline.errors import InvalidEvent
from pipeline.mapping.check import MAX_FIELDS, part_columns, restricted_columns
from pipeline.mapping.row import Row
from pipeline.mapping.templates import columns_of
from pipeline.mapping.values import clean_text, plain
from pipeline.steps.column_facts import column_facts
from pipeline.steps.vocabulary import Vocabulary, default_vocabulary
from schemas.access import AccessRule
from schemas.change_event import split_document_key
from schemas.document import Document
from schemas.mapping import BodyPart, Mapping, TypeSpec
from schemas.record import Record

MAX_TITLE, MAX_TYPE, MAX_FACTS = 1000, 100, 2000
"""Characters, characters, facts per record: more is refused, not cut."""

_SPACE = re.compile(r"\s+")
_RECORD_COLUMNS = ("title", "body", "type", "fields", "acl", "updated_at")


def map_record(record: Record, mapping: Mapping, vocabulary: Vocabulary | None = None) -> Document:
    """Make the document of a record: a pure function of the three. Takes upserts only.

    A record without title is called by its key; the body may be empty, its title is found then.
    Raises InvalidEvent: `missing_column`, `wrong_type` (with a pointer to the column), `title_too_long`,
    `too_many_fields`, `too_many_facts`.
    """
    row = Row(record, mapping)
    _require(row)
    access = row.access(mapping.acl)
    title = _title(row)
    fields, restricted = _fields(row, access)
    kind = _type(row)
    facts = column_facts(row, title, kind, vocabulary or default_vocabulary())
    _limit(record, "too_many_fields", len(fields), MAX_FIELDS)
    _limit(record, "too_many_facts", len(facts), MAX_FACTS)
    return Document(
        key=record.document,
        title=title,
        body=_body(row),
        type=kind,
        updated_at=_updated_at(row),
        access=access,
        fields=fields,
        restricted_fields=restricted,
        facts=tuple(facts),
    )


def _require(row: Row) -> None:
    """See schemas/mapping.py on absent columns."""
    mapping = row.mapping
    row.require(mapping.required, "'required'")
    if mapping.any_record:
        return
    row.require(columns_of(mapping.title), "the title")
    row.require(mapping.key, "the key")
    if mapping.entity:
        row.require((mapping.entity.column,), "the entity")
    named = [column for part in mapping.body for column in part_columns(part)]
    if named and not any(column in row.columns for column in named):
        raise row.missing(named[0], "the body (and it has no other column of the body)")


def _title(row: Row) -> str:
    record = row.record
    title = _SPACE.sub(" ", row.fill(row.mapping.title)).strip()
    if not title and row.mapping.any_record:
        title = _SPACE.sub(" ", row.text("name"))
    title = title or split_document_key(record.document)[2]
    _limit(record, "title_too_long", len(title), MAX_TITLE)
    return title


def _body(row: Row) -> str:
    parts = [text for part in row.mapping.body if (text := _part(row, part))]
    if not parts and row.mapping.any_record and "body" not in row.columns:
        parts = ["\n".join(_lines(row))]
    return "\n\n".join(parts)


def _part(row: Row, part: str | BodyPart) -> str:
    columns = part_columns(part)
    if columns and all(row.is_empty(column) for column in columns):
        return ""
    spec = BodyPart(template=part) if isinstance(part, str) else part
    text = row.text(spec.column) if spec.column else row.fill(spec.template or "")
    text = text.strip()
    return f"## {spec.heading}\n\n{text}" if spec.heading and text else text


def _lines(row: Row) -> Iterator[str]:
    """Write a record of unknown shape out, in order of the column names: the order of arrival may differ."""
    hidden = {*_RECORD_COLUMNS, *restricted_columns(row.mapping)}
    for column in sorted(row.columns.keys() - hidden):
        raw = row.columns[column]
        simple = not isinstance(raw, dict | list) or (isinstance(raw, list) and not any(map(_is_nested, raw)))
        if simple and (text := row.text(column)):
            yield f"{column}: {text}"


def _is_nested(raw: Any) -> bool:
    return isinstance(raw, dict | list)


def _type(row: Row) -> str:
    spec = row.mapping.type
    if not isinstance(spec, TypeSpec):
        return spec
    kind = _SPACE.sub(" ", row.text(spec.column)) or spec.default
    if len(kind) > MAX_TYPE:
        raise row.wrong(spec.column, f"a type has at most {MAX_TYPE} characters")
    return kind


def _updated_at(row: Row) -> str:
    column = row.mapping.updated_at
    value = row.value(column, "datetime") if column else None
    return row.record.occurred_at if value is None else str(plain(value))


def _fields(row: Row, access: AccessRule) -> tuple[dict[str, Any], dict[str, AccessRule]]:
    fields: dict[str, Any] = {}
    restricted: dict[str, AccessRule] = {}
    if row.mapping.any_record:
        fields.update(_loose_fields(row))
    for name, spec in row.mapping.fields.items():
        value = row.value(spec.column or name, spec.type)
        if value is None:
            continue
        as_text = spec.type in ("keyword", "text") and not isinstance(value, list)
        fields[name] = str(plain(value)) if as_text else plain(value)
        if spec.acl:
            restricted[name] = access.met(row.access(spec.acl))
    return fields, restricted


def _loose_fields(row: Row) -> Iterator[tuple[str, Any]]:
    """The members of the record's `fields`: texts, numbers, booleans, lists of texts and numbers; null is left out."""
    given = row.columns.get("fields")
    if given is None:
        return
    if not isinstance(given, dict):
        raise row.wrong("fields", "must be an object")
    for name, raw in given.items():
        if isinstance(raw, dict) or (isinstance(raw, list) and any(map(_is_nested, raw))):
            raise row.wrong("fields", f"{name!r} must be a text, a number, a boolean or a list of them")
        if isinstance(raw, list):
            yield name, [text for item in raw if (text := _as_text(item))]
        elif raw is not None and raw != "":
            yield name, clean_text(raw) if isinstance(raw, str) else raw


def _as_text(item: Any) -> str:
    if isinstance(item, bool):
        return "true" if item else "false"
    return "" if item is None else clean_text(str(item))


def _limit(record: Record, code: str, count: int, limit: int) -> None:
    if count > limit:
        what = code.replace("_", " ")
        raise InvalidEvent(
            code,
            f"{record.document}: {what}: {count}, at most {limit} are taken; change the mapping or split the record",
            document=record.document,
            position=record.position,
        )
