"""Walks the words of Sudachi's installed system dictionary, for the tables that are made of it.

The dictionary's format has no description but its builder: only what the tables need is read here.
"""

import struct
from collections.abc import Iterator
from importlib.resources import files

import msgspec

_HEADER = 272


class Word(msgspec.Struct, frozen=True):
    """An entry of the dictionary."""

    surface: str
    pos: tuple[str, ...]
    """Six levels."""
    normalized: str
    reading: str
    """In katakana."""
    groups: tuple[int, ...]
    """Synonym groups."""


class _Reader:
    """Reads forward through the bytes of a system dictionary."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from("<" + kind, self._data, self.at)
        self.at += struct.calcsize("<" + kind)
        return int(value)

    def skip(self, size: int) -> None:
        self.at += size

    def length(self) -> int:
        first = self.number("B")
        return ((first & 0x7F) << 8) | self.number("B") if first >= 0x80 else first

    def text(self) -> str:
        size = 2 * self.length()
        self.skip(size)
        return self._data[self.at - size : self.at].decode("utf-16-le", "replace")

    def numbers(self) -> tuple[int, ...]:
        return tuple(self.number("i") for _ in range(self.number("B")))


def words(data: bytes | None = None) -> Iterator[Word]:
    """Yield every entry of a system dictionary, the installed one by default (1.6 million, about 20 s)."""
    data = files("sudachidict_core").joinpath("resources/system.dic").read_bytes() if data is None else data
    reader = _Reader(data, _HEADER)
    parts = [tuple(reader.text() for _ in range(6)) for _ in range(reader.number("H"))]
    reader.skip(2 * reader.number("h") * reader.number("h"))  # connection costs
    reader.skip(4 * reader.number("I"))  # trie
    reader.skip(reader.number("I"))  # word ids
    count = reader.number("I")
    reader.skip(6 * count)  # costs of words
    for start in struct.unpack_from(f"<{count}I", data, reader.at):
        reader.at = start
        surface = reader.text()
        reader.length()
        pos = parts[reader.number("h")]
        normalized = reader.text() or surface
        reader.number("i")
        reading = reader.text() or surface
        for _ in range(3):  # its parts in modes A and B, its structure
            reader.numbers()
        yield Word(surface, pos, normalized, reading, reader.numbers())
