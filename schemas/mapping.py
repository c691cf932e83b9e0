"""A mapping: how the records of one source collection become documents, fields and facts."""

from typing import Any, Literal

import msgspec

ColumnType = Literal["keyword", "text", "integer", "decimal", "boolean", "date", "datetime"]


class PositionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How versions are ordered."""

    rule: Literal["integer", "lsn", "none"] = "integer"
    """`lsn`: PostgreSQL's `X/Y` in hexadecimal, or an integer. `none`: `occurred_at` orders."""
    column: str | None = None
    """Take it from this column instead of the envelope."""


class ColumnRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a raw column is decoded when its envelope carried no schema."""

    type: ColumnType
    scale: int | None = None
    """Decimals: digits after the point, for base64 unscaled values."""


class AccessSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may read: fixed groups, or a column that lists them."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    column: str | None = None
    default: tuple[str, ...] = ()
    """When the column is empty."""


class BodyPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the body; left out when all its columns are empty."""

    template: str | None = None
    column: str | None = None
    heading: str | None = None


class FieldSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filterable field."""

    type: ColumnType = "keyword"
    column: str | None = None
    """The column of the same name when left out."""
    acl: AccessSpec | None = None


class NameSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column with one or several names."""

    column: str
    split: str | None = None


class EntitySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The thing a record is about."""

    column: str
    type: str
    labels: tuple[str | NameSpec, ...] = ()
    aliases: tuple[str | NameSpec, ...] = ()


class ObjectSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entity named by a column."""

    column: str
    type: str
    split: str | None = None


class LiteralSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A literal from a column."""

    column: str
    type: ColumnType = "keyword"


class FactSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column that becomes facts."""

    predicate: str
    object: ObjectSpec | None = None
    literal: LiteralSpec | None = None
    subject: Literal["document", "entity"] | ObjectSpec | None = None
    acl: AccessSpec | None = None


class TypeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The document's type from a column."""

    column: str
    default: str = "Document"


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One mapping file."""

    source: str
    collection: str
    title: str
    body: tuple[str | BodyPart, ...]
    key: tuple[str, ...] = ()
    position: PositionRule | None = None
    """None: positioned when the first event of the collection is."""
    type: str | TypeSpec = "Document"
    updated_at: str | None = None
    columns: dict[str, ColumnRule] = {}
    fields: dict[str, FieldSpec] = {}
    acl: AccessSpec = AccessSpec()
    entity: EntitySpec | None = None
    facts: tuple[FactSpec, ...] = ()
    extra: dict[str, Any] = {}
    """Free remarks; not read."""
