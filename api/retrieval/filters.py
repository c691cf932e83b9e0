"""Filters of a request: checked by the index first, and by the manifest, which knows what is true now."""

from contextlib import suppress
from datetime import timedelta
from itertools import product
from typing import Any

import msgspec

from api.retrieval.access import Asker
from pipeline.errors import InvalidQuery
from pipeline.mapping import Mappings
from pipeline.mapping.values import plain, read_value
from pipeline.ports.chunk_index import ChunkFilter
from pipeline.text.calendar import parse_date, parse_time, utc_text
from schemas.change_event import split_document_key
from schemas.document import Manifest
from schemas.mapping import ColumnRule
from schemas.query import Filters, TimeRange


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Filters in the form that the index takes."""

    sources: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    updated_from: str = ""
    updated_to: str = ""
    fields: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    unmapped: tuple[str, ...] = ()
    """Those of the fields that no mapping names: only records of collections without a mapping can have them."""
    guarded: frozenset[str] = frozenset()
    """Fields that the index does not know, because not everyone may see them: the manifest alone decides."""

    def chunk_filter(self, classes: tuple[str, ...] | None, documents: tuple[str, ...] = ()) -> ChunkFilter:
        """Return the index's filter; `documents` narrows it further."""
        return ChunkFilter(
            access_classes=classes,
            sources=self.sources,
            collections=self.collections,
            types=self.types,
            documents=documents or self.documents,
            updated_from=self.updated_from,
            updated_to=self.updated_to,
            fields={name: values for name, values in self.fields.items() if name not in self.guarded},
        )

    @property
    def open(self) -> bool:
        """Say whether every document passes."""
        return self == Where(guarded=self.guarded)

    def matches(self, manifest: Manifest, asker: Asker) -> bool:
        """Say whether the document, as it is now, passes; a field the asker may not see never matches."""
        source, collection, _ = split_document_key(manifest.document)
        return (
            _one_of(source, self.sources)
            and _one_of(collection, self.collections)
            and _one_of(manifest.type, self.types)
            and _one_of(manifest.document, self.documents)
            and (not self.updated_from or manifest.updated_at >= self.updated_from)
            and (not self.updated_to or manifest.updated_at < self.updated_to)
            and all(
                asker.may_use_field(manifest, name) and not set(values).isdisjoint(texts(manifest.fields.get(name)))
                for name, values in self.fields.items()
            )
        )


def guarded_fields(mappings: Mappings) -> frozenset[str]:
    """Return the fields that some mapping restricts."""
    return frozenset(name for mapping in mappings.all() for name, spec in mapping.fields.items() if spec.acl)


def compile_filters(filters: Filters | None, mappings: Mappings) -> Where:
    """Read the filters of a request. Raises InvalidQuery for a time that is none."""
    if filters is None:
        return Where()
    start, end = _bounds(filters.updated_at)
    mapped = {name for mapping in mappings.all() for name in mapping.fields}
    fields = {name: _readings(name, value, mappings) for name, value in filters.fields.items() if texts(value)}
    return Where(
        sources=_many(filters.source),
        collections=_many(filters.collection),
        types=_many(filters.type),
        documents=_many(filters.document),
        updated_from=start,
        updated_to=end,
        fields=fields,
        unmapped=tuple(name for name in fields if name not in mapped),
        guarded=guarded_fields(mappings),
    )


def _readings(name: str, value: Any, mappings: Mappings) -> tuple[str, ...]:
    """Return the texts that a field may hold where it is said to be `value`: 2025/7/8 is kept as 2025-07-08."""
    types = {spec.type for mapping in mappings.all() if (spec := mapping.fields.get(name))} - {"keyword", "text"}
    found = list(texts(value))
    for type_, one in product(sorted(types), value if isinstance(value, list) else [value]):
        with suppress(ValueError):  # what the type cannot be is compared as written
            read = read_value(one, ColumnRule(type_))
            found += () if read is None else texts(plain(read))
    return tuple(dict.fromkeys(found))


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts by which a field value is compared, as the indexes do it."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(text for item in value for text in texts(item)))
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, float) and value.is_integer():
        return (str(int(value)),)
    return (str(value),)


def _one_of(value: str, allowed: tuple[str, ...]) -> bool:
    return not allowed or value in allowed


def _many(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _bounds(times: TimeRange | None) -> tuple[str, str]:
    """Return the inclusive start and exclusive end in UTC."""
    if times is None:
        return "", ""
    starts = [_moment(times.gte, "gte", after=False), _moment(times.gt, "gt", after=True)]
    ends = [_moment(times.lt, "lt", after=False), _moment(times.lte, "lte", after=True)]
    return max(starts), min((end for end in ends if end), default="")


def _moment(text: str | None, name: str, *, after: bool) -> str:
    """Return the moment in UTC, or with `after` the first one past it (past the whole day of a date)."""
    if text is None:
        return ""
    moment = parse_time(text)
    if moment is None:
        raise InvalidQuery(f"{text!r} is no date or time (RFC 3339)", pointer=f"/filters/updated_at/{name}")
    if after:
        moment += timedelta(days=1) if parse_date(text) else timedelta(microseconds=1)
    return utc_text(moment)
