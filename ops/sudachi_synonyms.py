"""Writes schemas/synonyms/sudachi.tsv: the synonym groups of Sudachi's installed dictionary, as index terms.

`python -m ops.sudachi_synonyms` after a change of the pinned dictionary or of the terms; it takes about a minute. The
dictionary's format has no description but its builder: only what lies before a word's synonym groups is read here.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import schemas
from pipeline.text.patterns import load_identifiers
from pipeline.text.terms import TermAnalyzer

TARGET = Path(schemas.__file__).parent / "synonyms" / "sudachi.tsv"
_HEADER = 272
_SHORTEST_ABBREVIATION = 4
"""Shorter ASCII words stand for too many things (SP is a smartphone, and much else)."""
_MOST_TERMS = 4


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

    def numbers(self) -> list[int]:
        return [self.number("i") for _ in range(self.number("B"))]


def words_of_groups(data: bytes) -> dict[int, set[str]]:
    """Return the normalized words of each synonym group."""
    reader = _Reader(data, _HEADER)
    for _ in range(6 * reader.number("H")):  # parts of speech, six levels each
        reader.text()
    reader.skip(2 * reader.number("h") * reader.number("h"))  # connection costs
    reader.skip(4 * reader.number("I"))  # trie
    reader.skip(reader.number("I"))  # word ids
    count = reader.number("I")
    reader.skip(6 * count)  # costs of words
    groups: dict[int, set[str]] = defaultdict(set)
    for start in struct.unpack_from(f"<{count}I", data, reader.at):
        reader.at = start
        word = reader.text()
        reader.length()
        reader.number("h")
        normalized = reader.text() or word
        reader.number("i")
        reader.text()
        for _ in range(3):  # its parts in modes A and B, its structure
            reader.numbers()
        for group in reader.numbers():
            groups[group].add(normalized)
    return groups


def as_terms(groups: dict[int, set[str]], analyzer: TermAnalyzer) -> Iterator[list[str]]:
    """Yield groups of two or more words, as terms; words of several groups are in none, because they are ambiguous."""
    found = {
        group: {terms for word in words if (terms := analyzer.analyze(word).terms)} for group, words in groups.items()
    }
    home: dict[tuple[str, ...], int] = {}
    several: set[tuple[str, ...]] = set()
    for group, members in found.items():
        for terms in members:
            if home.setdefault(terms, group) != group:
                several.add(terms)
    for _, members in sorted(found.items()):
        clear = sorted(" ".join(t) for t in members - several if len(t) <= _MOST_TERMS and _tells("".join(t)))
        if len(clear) > 1:
            yield clear


def _tells(word: str) -> bool:
    return len(word) >= (_SHORTEST_ABBREVIATION if word.isascii() else 2)


def main() -> None:
    """Write the file."""
    data = files("sudachidict_core").joinpath("resources/system.dic").read_bytes()
    lines = ["\t".join(group) for group in as_terms(words_of_groups(data), TermAnalyzer(load_identifiers()))]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} groups in {TARGET}")


if __name__ == "__main__":
    main()
