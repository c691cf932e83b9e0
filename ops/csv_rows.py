"""Rows of a CSV file: UTF-8, with byte order mark, or CP932; the first row holds the column names."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ops.text_encoding import detect_encoding

MAX_CELL = 16 * 1024 * 1024


class BadRow(ValueError):
    """A row that cannot be read; reading goes on after it."""

    def __init__(self, line: int, reason: str) -> None:
        """Keep the line on which the row ends."""
        super().__init__(reason)
        self.line = line


def csv_rows(path: Path, encoding: str | None = None) -> Iterator[tuple[int, dict[str, str]] | BadRow]:
    """Yield (line, column → text) row by row; blank rows are left out, bad ones come as BadRow.

    `.tsv` files are separated by tabs. Raises ValueError for a file without usable header or encoding.
    """
    codec = encoding or detect_encoding(path)
    csv.field_size_limit(MAX_CELL)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig" if codec.lower() in ("utf-8", "utf8") else codec, newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        header = _header(reader)
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield BadRow(reader.line_num, f"is no CSV: {error}")
                continue
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                yield BadRow(reader.line_num, f"has {len(cells)} cells, but there are {len(header)} columns")
                continue
            yield reader.line_num, dict(zip(header, cells, strict=True))


def _header(reader: "Iterator[list[str]]") -> list[str]:
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise ValueError(f"the header is no CSV: {error}") from error
    if not header or "" in header or len(set(header)) < len(header):
        raise ValueError("the first row must hold the column names, each once and none empty")
    return header
