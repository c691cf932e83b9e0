"""Files as change events, for `shinsen publish`: JSON lines, JSON, CSV, and folders of Markdown or text.

**Order of versions.** Rows and documents have no positions: their time orders them. It is the record's
own time (the mapping's `updated_at`, for documents also the front matter's), else the file's time of
change. So a file that is published again unchanged gives duplicates, and a changed row or document wins
when its time, or without one the file's, has moved on. Where authors do not keep `updated_at`, take
`order="file"`: the file's time always orders; then rows of a rewritten file are new versions, which
costs no model work while their content is the same.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec

from ops.csv_rows import BadRow, csv_rows
from ops.text_documents import SUFFIXES, document_columns, text_files
from ops.text_encoding import read_text
from pipeline.decoding.build import key_part
from pipeline.decoding.names import check_key, join_key
from pipeline.errors import InvalidConfiguration, InvalidEvent
from pipeline.mapping import Mappings
from pipeline.mapping.values import is_empty
from pipeline.text.calendar import parse_time, utc_text
from schemas.change_event import Lane, RawEvent, document_key
from schemas.mapping import Mapping

Format = Literal["events-jsonl", "events-json", "csv", "markdown-folder"]
_FORMATS: dict[str, Format] = {
    ".jsonl": "events-jsonl",
    ".ndjson": "events-jsonl",
    ".json": "events-json",
    ".csv": "csv",
    ".tsv": "csv",
    **dict.fromkeys(SUFFIXES, "markdown-folder"),
}


class FileEvent(msgspec.Struct, frozen=True):
    """An event and where it stands."""

    event: RawEvent
    where: str
    """`file:line`, or the file of a document."""
    document: str = ""
    """Document key; empty for lines that are envelopes themselves: the server reads those."""


class BadLine(msgspec.Struct, frozen=True):
    """A line or file that gives no event; reading went on after it."""

    where: str
    reason: str


class Reading:
    """Reads one file or folder, streaming; remembers which keys it saw, for a full sync."""

    def __init__(
        self,
        path: Path,
        mappings: Mappings,
        *,
        source: str = "",
        collection: str = "",
        key: tuple[str, ...] = (),
        format: Format | None = None,
        encoding: str | None = None,
        order: Literal["record", "file"] = "record",
        lane: Lane = "bulk",
    ) -> None:
        """`source` and `collection` are needed for rows and documents; `key` names columns in place of the mapping's.

        Raises InvalidConfiguration: no such file, unknown format, or source and collection missing.
        """
        if not path.exists():
            raise InvalidConfiguration(f"{path}: there is no such file or folder")
        self.path, self.format = path, format or _format(path)
        if self.format in ("csv", "markdown-folder") and not (source and collection):
            raise InvalidConfiguration(
                f"{path}: rows and documents need a source and a collection (--source, --collection)"
            )
        self.source, self.collection = source, collection
        self.mapping: Mapping = mappings.of(source, collection)
        self.seen: set[str] = set()
        """Keys read so far, without source and collection."""
        self.bad = 0
        self._complete = False
        self._key, self._encoding, self._order, self._lane = key, encoding, order, lane

    def __iter__(self) -> Iterator[FileEvent | BadLine]:
        """Yield events and bad lines in the order of the file."""
        read = {
            "events-jsonl": self._lines,
            "events-json": self._items,
            "csv": self._rows,
            "markdown-folder": self._documents,
        }[self.format]
        self.seen, self.bad, self._complete = set(), 0, False
        for item in read():
            self.bad += isinstance(item, BadLine)
            yield item
        self._complete = True

    def deletes(self, known: Iterable[str], at: str) -> Iterator[FileEvent]:
        """Yield a delete for each known key that was not seen: the second half of a full sync, after reading all.

        `known` are keys of (source, collection) that exist now; `at` (RFC 3339) is the time of the sync.
        Raises InvalidConfiguration instead of deleting too much: when not all was read, when something
        could not be read (it might be one of them), when nothing was there at all, and for envelopes.
        """
        if reason := self._why_no_deletes():
            raise InvalidConfiguration(f"{self.path}: {reason}, so nothing is deleted")
        for key in sorted(set(known) - self.seen):
            body = {"source": self.source, "collection": self.collection, "key": key, "op": "delete", "occurred_at": at}
            document = document_key(self.source, self.collection, key)
            yield FileEvent(RawEvent(value=msgspec.json.encode(body), lane=self._lane), str(self.path), document)

    def _why_no_deletes(self) -> str:
        if self.format in ("events-jsonl", "events-json"):
            return "a file of envelopes is no full state (it says its deletes itself)"
        if not self._complete:
            return "the file has not been read to its end"
        if self.bad:
            return f"{self.bad} could not be read (correct them first)"
        return "" if self.seen else "there is not one row or document in it"

    def _lines(self) -> Iterator[FileEvent | BadLine]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.strip().removeprefix(b"\xef\xbb\xbf")
                if text:
                    yield FileEvent(RawEvent(value=text, lane=self._lane), f"{self.path}:{number}")

    def _items(self) -> Iterator[FileEvent | BadLine]:
        try:
            items = msgspec.json.decode(self.path.read_bytes(), type=list[msgspec.Raw] | msgspec.Raw)
        except (msgspec.DecodeError, RecursionError) as error:
            yield BadLine(str(self.path), f"is no JSON: {error}")
            return
        for number, item in enumerate(items if isinstance(items, list) else [items]):
            yield FileEvent(RawEvent(value=bytes(item), lane=self._lane), f"{self.path}[{number}]")

    def _rows(self) -> Iterator[FileEvent | BadLine]:
        try:
            for item in csv_rows(self.path, self._encoding):
                if isinstance(item, BadRow):
                    yield BadLine(f"{self.path}:{item.line}", str(item))
                else:
                    yield self._upsert(item[1], self.path, f"{self.path}:{item[0]}", None)
        except (ValueError, LookupError, OSError) as error:
            yield BadLine(str(self.path), str(error))

    def _documents(self) -> Iterator[FileEvent | BadLine]:
        folder = self.path if self.path.is_dir() else self.path.parent
        for file in text_files(folder) if self.path.is_dir() else [self.path]:
            name = file.relative_to(folder).as_posix()
            try:
                columns = document_columns(read_text(file, self._encoding), name)
            except (ValueError, LookupError, OSError) as error:
                yield BadLine(str(file), str(error))
                continue
            yield self._upsert(columns, file, str(file), str(columns.get("key") or name))

    def _upsert(self, columns: dict[str, Any], file: Path, where: str, fallback: str | None) -> FileEvent | BadLine:
        try:
            key = self._key_of(columns, fallback)
            body = {
                "source": self.source,
                "collection": self.collection,
                "key": key,
                "occurred_at": self._time_of(columns, file),
                "record": columns,
            }
            value = msgspec.json.encode(body)
        except (InvalidEvent, ValueError, TypeError, OSError) as error:
            return BadLine(where, str(error))
        self.seen.add(key)
        return FileEvent(RawEvent(value=value, lane=self._lane), where, document_key(self.source, self.collection, key))

    def _key_of(self, columns: dict[str, Any], fallback: str | None) -> str:
        names = self._key or self.mapping.key
        missing = [name for name in names if is_empty(columns.get(name))]
        if names and not missing:
            return check_key(
                join_key([key_part(columns[n], self.mapping.columns.get(n), f"/{n}") for n in names]), "/key"
            )
        if fallback is not None:
            return check_key(fallback, "/key")
        what = (
            f"its key column {missing[0]!r} is empty or absent" if missing else "nothing says which column is the key"
        )
        raise ValueError(f"{what}; name it with --key, or as `key: [column]` in the mapping")

    def _time_of(self, columns: dict[str, Any], file: Path) -> str:
        raw = columns.get(self.mapping.updated_at or "updated_at")
        if self._order == "record" and isinstance(raw, str) and raw.strip():
            if moment := parse_time(raw):
                return utc_text(moment)
            raise ValueError(f"{raw[:60]!r} is no time")
        since = timedelta(microseconds=file.stat().st_mtime_ns // 1000)
        return utc_text(datetime(1970, 1, 1, tzinfo=UTC) + since)


def read_files(path: Path, mappings: Mappings, **options: Any) -> Reading:
    """Read one file or folder; the options are those of `Reading`."""
    return Reading(path, mappings, **options)


def _format(path: Path) -> Format:
    if path.is_dir():
        return "markdown-folder"
    if found := _FORMATS.get(path.suffix.lower()):
        return found
    raise InvalidConfiguration(f"{path}: known are {', '.join(_FORMATS)} and folders of {', '.join(SUFFIXES)}")
