"""Headings of Markdown and of Japanese rules and manuals: where sections begin, and what stands above them."""

import re
from collections.abc import Iterator

import msgspec

_DIGIT = "0-9\uff10-\uff19"
_CANDIDATE = re.compile(rf"^(?:[#第{_DIGIT}]| {{0,3}}(?:```|~~~))[^\r\n]*", re.MULTILINE)
_MARKDOWN = re.compile(r"(#{1,6})[ \t\u3000]+(.+)")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_ARTICLE = re.compile(
    rf"(第[{_DIGIT}〇一二三四五六七八九十百千]{{1,6}}([編章節款条])(?:の[{_DIGIT}一二三四五六七八九十]{{1,3}})?)"
    r"(?:[ \t\u3000]*([(\uff08][^)\uff09]{1,60}[)\uff09])|(?=[ \t\u3000]|$))"
)
_NUMBERED = re.compile(rf"([{_DIGIT}]{{1,3}}(?:[.\uff0e][{_DIGIT}]{{1,3}})+)[.\uff0e]?[ \t\u3000]+(?=\S)")
_RANKS = {"編": 10, "章": 11, "節": 12, "款": 13, "条": 14}
_LONGEST, _LONGEST_MARKDOWN = 60, 200
"""A line longer than this is text that begins like a heading."""


class Section(msgspec.Struct, frozen=True):
    """A stretch of the body from a heading to the next one; `end` is exclusive."""

    start: int
    end: int
    headings: tuple[str, ...]
    """The headings above the text, outermost first, its own last."""
    only_heading: bool
    """True when nothing but its heading stands in it."""


def sections(body: str) -> Iterator[Section]:
    """Cut a body at its headings; the sections tile it. The heading's line belongs to its section."""
    above: list[tuple[int, str]] = []
    start, heading_end = 0, 0
    for at, end, rank, heading in _headings(body):
        if at > start:
            yield _section(body, start, at, heading_end, above)
        while above and above[-1][0] >= rank:
            above.pop()
        above.append((rank, heading))
        start, heading_end = at, end
    if start < len(body):
        yield _section(body, start, len(body), heading_end, above)


def _section(body: str, start: int, end: int, heading_end: int, above: list[tuple[int, str]]) -> Section:
    return Section(start, end, tuple(h for _, h in above), bool(above) and not body[heading_end:end].strip())


def _headings(body: str) -> Iterator[tuple[int, int, int, str]]:
    """Yield (start of the line, end of the heading, rank, text); a smaller rank stands higher."""
    fenced = False
    for line in _CANDIDATE.finditer(body):
        text = line.group()
        if _FENCE.match(text):
            fenced = not fenced
            continue
        found = None if fenced else _heading(text)
        if found:
            length, rank, heading = found
            yield line.start(), line.start() + length, rank, heading


def _heading(line: str) -> tuple[int, int, str] | None:
    """Return (length, rank, text) when a line is or begins with a heading."""
    first = line[0]
    if first == "#":
        match = _MARKDOWN.match(line) if len(line) <= _LONGEST_MARKDOWN else None
        return (len(line), len(match.group(1)), match.group(2).strip(" \t\u3000#")) if match else None
    if first == "第":
        return _article(line)
    if len(line) <= _LONGEST and not line.rstrip().endswith("。"):
        match = _NUMBERED.match(line)
        depth = len(re.findall("[.\uff0e]", match.group(1))) if match else 0
        return (len(line), 20 + depth, line.strip()) if match else None
    return None


def _article(line: str) -> tuple[int, int, str] | None:
    """第2条(適用範囲) with its text on the same line, or 第1章 総則 on a line of its own."""
    match = _ARTICLE.match(line)
    if not match:
        return None
    rank = _RANKS[match.group(2)]
    if match.group(3):
        return match.end(), rank, match.group().strip()
    if len(line) <= _LONGEST and not line.rstrip().endswith("。"):
        return len(line), rank, line.strip()
    return match.end(1), rank, match.group(1)
