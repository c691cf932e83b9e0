"""A mapping: how the records of one source collection become documents, fields and facts.

**Empty and absent.** A column is empty when it is null, blank text or an empty list; empty columns are
left out of body, fields and facts. A column that the record does not have at all counts as empty too,
except where the document would not be the same thing without it: a column of the title, of the key, of
the entity or of `required` that is absent, or a body of whose columns not one is there, ends the record
in the dead letters as `missing_column`, which names the column and the mapping file. (So a typing error
is found, while a column that was added to the source and the mapping later can be replayed over old records.)

**Templates** hold column names in braces: `"{equipment_no} {name}"`; a brace itself is doubled: `{{`.
Dates and texts are shown as written, encoded numbers and times decoded, times in Asia/Tokyo.
"""

from typing import Any, Literal

import msgspec

ColumnType = Literal["keyword", "text", "integer", "decimal", "boolean", "date", "datetime"]
EpochUnit = Literal["s", "ms", "us", "ns"]


class PositionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How versions are ordered."""

    rule: Literal["integer", "lsn", "none"] = "integer"
    """`lsn`: PostgreSQL's `X/Y` in hexadecimal, or an integer. `none`: `occurred_at` orders, positions
    in the envelope are not read."""
    column: str | None = None
    """Take it from this column instead of the envelope."""


class ColumnRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a raw column is decoded when its envelope carried no schema."""

    type: ColumnType
    scale: int | None = None
    """Decimals: digits after the point, for base64 unscaled values (Debezium's `precise` mode without a
    schema). Leave it out when the connector writes decimals as text."""
    epoch: Literal["wall", "utc"] = "wall"
    """How a number in a `datetime` column is read (seconds, milli-, micro- or nanoseconds, by size): `wall`
    as Debezium encodes a timestamp without time zone, so as Asia/Tokyo; `utc` as a point in time."""
    unit: EpochUnit | None = None
    """What such a number counts. Without it the size decides, which reads microseconds of before 1978 as
    milliseconds: name it where old times occur (`us` for PostgreSQL's `timestamp`, `ms` for its `timestamp(3)`)."""
    zoneless: bool = False
    """A `Z` at the end of a text means nothing, since the source's column has no time zone: Asia/Tokyo. Debezium
    writes it with `time.precision.mode=isostring`."""


class AccessSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who may read: fixed groups, or a column that lists them.

    The column holds a list, or a text separated by commas or 「、」; `!group` is denied. An explicit empty
    list, or an empty column without `default`, lets nobody read but principals with `*`.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    column: str | None = None
    default: tuple[str, ...] = ()
    """When the column is null, blank or absent."""


class BodyPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the body; left out when all its columns are empty. Holds one of `template` and `column`."""

    template: str | None = None
    column: str | None = None
    heading: str | None = None


class FieldSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filterable field."""

    type: ColumnType = "keyword"
    column: str | None = None
    """The column of the same name when left out."""
    label: str | None = None
    """What people call it in questions and answers; the column's name when left out."""
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
    """A column that becomes facts. Holds one of `object` and `literal`."""

    predicate: str
    object: ObjectSpec | None = None
    literal: LiteralSpec | None = None
    subject: Literal["document", "entity"] | ObjectSpec | None = None
    """When left out: the entity if the mapping has one, else the document."""
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
    required: tuple[str, ...] = ()
    """Further columns that every record must have."""
    any_record: bool = False
    """Take records of any shape, as the default mapping does: absent columns are empty, the members of a
    `fields` object become fields, a record without title is called by its `name` or its key, and one
    without body is written out as lines `column: value` in order of the column names."""
    file: str = ""
    """Where it was loaded from, for messages; set by the loader and not part of the version."""
    extra: dict[str, Any] = {}
    """Free remarks; not read."""
