"""Sentences of a passage, with exact offsets."""

import re
from collections.abc import Iterator

import msgspec

_END = re.compile(r"(?:[。！？!?]+|．(?![0-9０-９])|\.(?=\s))[」』）)】〕》〉”’\"']*|[\r\n]+")
_MARKER = re.compile(r"\s*(?:[-*・●■○◆]\s+|\d{1,3}[.)．]\s+|#{1,6}\s+|>\s+)?")
_NO_SENTENCE = re.compile(r"\s*(?:#{1,6}\s|\||[-=_*]{3,}\s*$)")
_SHORTEST = 4


class Sentence(msgspec.Struct, frozen=True):
    """`text == passage[start:end]`."""

    start: int
    end: int
    text: str


def sentences(passage: str) -> Iterator[Sentence]:
    """Yield the sentences in order: no headings, no rows of tables, no list markers, no space around."""
    start = 0
    for match in _END.finditer(passage):
        yield from _sentence(passage, start, match.end())
        start = match.end()
    yield from _sentence(passage, start, len(passage))


def _sentence(passage: str, start: int, end: int) -> Iterator[Sentence]:
    piece = passage[start:end]
    if _NO_SENTENCE.match(piece):
        return
    marker = _MARKER.match(piece)
    start += marker.end() if marker else 0
    end = start + len(passage[start:end].rstrip())
    if end - start >= _SHORTEST:
        yield Sentence(start, end, passage[start:end])
