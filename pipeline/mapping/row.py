"""A row: the columns of one record, read by the rules of its mapping."""

from typing import Any

import msgspec

from pipeline.errors import InvalidEvent
from pipeline.mapping.templates import parse_template
from pipeline.mapping.values import KEYWORD, Value, is_empty, lexical, plain, read_value, shown
from schemas.access import AccessRule, access_rule
from schemas.knowledge import LiteralValue
from schemas.mapping import AccessSpec, ColumnRule, ColumnType, Mapping
from schemas.record import Record

MAX_GROUP_LENGTH = 100


class Row:
    """Typed and textual access to columns. All methods raise InvalidEvent (`wrong_type`, `missing_column`)."""

    def __init__(self, record: Record, mapping: Mapping) -> None:
        """Take a record and the mapping of its collection."""
        self.record, self.mapping, self.columns = record, mapping, record.columns

    def require(self, columns: tuple[str, ...], why: str) -> None:
        """Refuse the record when one of these columns is absent (null is there)."""
        for column in columns:
            if column not in self.columns:
                raise self.missing(column, why)

    def missing(self, column: str, why: str) -> InvalidEvent:
        """Build the error for an absent column, which names the mapping file."""
        file = self.mapping.file or f"the mapping of {self.mapping.source}/{self.mapping.collection}"
        return self._refusal(
            "missing_column",
            column,
            f"the record has no column {column!r}, which {file} names for {why}; correct the name there, or the source",
        )

    def is_empty(self, column: str) -> bool:
        """Say whether a column is null, blank, an empty list or absent."""
        return is_empty(self.columns.get(column))

    def text(self, column: str) -> str:
        """Return a column as people read it; "" when it is empty."""
        return str(self._read(column, shown, self.rule(column)))

    def fill(self, template: str) -> str:
        """Fill a template; empty columns leave nothing."""
        return "".join(self.text(p.text) if p.is_column else p.text for p in parse_template(template))

    def names(self, column: str, split: str | None = None) -> list[str]:
        """Return the names in a column: the members of a list, the pieces of a text, each once."""
        value = self.value(column)
        items = value if isinstance(value, list) else [] if value is None else [str(plain(value))]
        pieces = [piece.strip() for item in items for piece in (item.split(split) if split else [item])]
        return list(dict.fromkeys(piece for piece in pieces if piece))

    def value(self, column: str, kind: ColumnType | None = None) -> Value | None:
        """Return a column's value as `kind`, or as the mapping's column rule says; None when empty."""
        rule = self.rule(column)
        if kind not in (None, "keyword", "text", rule.type):
            rule = msgspec.structs.replace(rule, type=kind)
        value: Value | None = self._read(column, read_value, rule)
        return value

    def literal(self, column: str, kind: ColumnType = "keyword") -> list[LiteralValue]:
        """Return a column as literals: one, several for a list, none when empty."""
        value = self.value(column, kind)
        items = value if isinstance(value, list) else [] if value is None else [value]
        return [LiteralValue(*lexical(item)) for item in items]

    def access(self, spec: AccessSpec) -> AccessRule:
        """Return the rule of an ACL; without any group named it is public."""
        if spec.column is None:
            return access_rule(spec.allow, spec.deny) if spec.allow else AccessRule(deny=spec.deny)
        raw = self.columns.get(spec.column)
        if raw is None or (isinstance(raw, str) and not raw.strip()):
            return access_rule((*spec.allow, *spec.default), spec.deny)
        return access_rule((*spec.allow, *self._groups(spec.column, raw)), spec.deny)

    def rule(self, column: str) -> ColumnRule:
        """Return how a column is decoded."""
        return self.mapping.columns.get(column, KEYWORD)

    def wrong(self, column: str, reason: str) -> InvalidEvent:
        """Build the error for a value that cannot be read."""
        return self._refusal("wrong_type", column, f"column {column!r} of {self.record.document}: {reason}")

    def _groups(self, column: str, raw: Any) -> list[str]:
        listed = raw.replace("、", ",").split(",") if isinstance(raw, str) else raw
        if not isinstance(listed, list) or not all(isinstance(g, str) and g.strip(" !") for g in listed):
            raise self.wrong(column, "an ACL is a list of group names")
        groups = [group.strip() for group in listed]
        if any(len(group) > MAX_GROUP_LENGTH or group == "*" for group in groups):
            raise self.wrong(column, f"a group has 1 to {MAX_GROUP_LENGTH} characters, and '*' is none")
        return groups

    def _read(self, column: str, reader: Any, rule: ColumnRule) -> Any:
        try:
            return reader(self.columns.get(column), rule)
        except ValueError as error:
            raise self.wrong(column, str(error)) from error

    def _refusal(self, code: str, column: str, reason: str) -> InvalidEvent:
        pointer = "/columns/" + column.replace("~", "~0").replace("/", "~1")
        return InvalidEvent(code, reason, pointer=pointer, document=self.record.document, position=self.record.position)
