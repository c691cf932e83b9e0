"""What stands around a hit, with exact offsets: neighbouring chunks, or the whole document; and its best part."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from api.retrieval.passages import Passage, read_passages
from api.retrieval.reader import Reader
from api.retrieval.search import Candidate
from schemas.around import ContextPart, Expand, Snippet
from schemas.document import ChunkRef

MOST_CHUNKS = 2_000
"""Chunks read for one page; hits further down get less around them."""
_SENTENCE_END = re.compile(r"[。．！？!?\n]+[」』）)]*\s*|\.\s+")
_JOINERS = "\u200d\ufe0e\ufe0f"


async def contexts(reader: Reader, passages: Sequence[Passage], expand: Expand) -> list[list[ContextPart]]:
    """Return for each passage the parts of its document's body around it, in reading order, the passage among them.

    Only of the version that was found: what changed meanwhile is left out. A part never crosses what no chunk holds.
    """
    left = MOST_CHUNKS
    windows: list[list[ChunkRef]] = []
    for passage in passages:
        refs = _window(passage.candidate, expand)[: max(left, 0)]
        left -= len(refs)
        windows.append(refs)
    wanted = {
        ref.id: msgspec.structs.replace(passage.candidate, id=ref.id, ref=ref)
        for passage, refs in zip(passages, windows, strict=True)
        for ref in refs
    }
    texts = {passage.candidate.id: passage.text for passage in passages}
    read = await read_passages(reader, [one for one in wanted.values() if one.id not in texts], "vector")
    texts |= {passage.candidate.id: passage.text for passage in read}
    return [
        list(_joined([(ref, texts[ref.id]) for ref in sorted({*refs, p.candidate.ref}, key=_place) if ref.id in texts]))
        for p, refs in zip(passages, windows, strict=True)
    ]


def _place(ref: ChunkRef) -> tuple[int, int]:
    return ref.start, ref.end


def _window(candidate: Candidate, expand: Expand) -> list[ChunkRef]:
    """Return the chunks around a hit, the nearest first, as far as they are wanted and fit."""
    refs = sorted(candidate.manifest.chunks, key=_place)
    at = next(n for n, ref in enumerate(refs) if ref.id == candidate.id)
    start, end = candidate.ref.start, candidate.ref.end
    chosen: list[ChunkRef] = []
    reach = len(refs) if expand.parent else expand.neighbours
    for distance in range(1, reach + 1):
        for n in (at - distance, at + distance):
            if not 0 <= n < len(refs):
                continue
            if max(end, refs[n].end) - min(start, refs[n].start) > expand.max_characters:
                return chosen
            start, end = min(start, refs[n].start), max(end, refs[n].end)
            chosen.append(refs[n])
    return chosen


def _joined(pieces: Sequence[tuple[ChunkRef, str]]) -> Iterator[ContextPart]:
    """Join chunks that overlap or touch: the last sentence of one may be the first of the next."""
    text, start, end = "", 0, -1
    for ref, its_text in pieces:
        if end >= 0 and ref.start <= end:
            text += its_text[end - ref.start :] if ref.end > end else ""
            end = max(end, ref.end)
            continue
        if end >= 0:
            yield ContextPart(text=text, span=(start, end))
        text, start, end = its_text, ref.start, ref.end
    if end >= 0:
        yield ContextPart(text=text, span=(start, end))


def snippet(text: str, at: int, highlights: Sequence[tuple[int, int]], size: int) -> Snippet:
    """Return the part of a hit, at most `size` characters, with the most different highlighted words.

    `at` is where the hit stands in the body. It begins with a sentence where one begins shortly before the
    first highlight, and cuts no character in two.
    """
    start = _start(text, highlights, size)
    end = min(len(text), start + size)
    while end > start + 1 and end < len(text) and _inside_character(text, end):
        end -= 1
    inside = [(max(s, start) - start, min(e, end) - start) for s, e in highlights if s < end and e > start]
    return Snippet(text=text[start:end], span=(at + start, at + end), highlights=inside)


def _start(text: str, highlights: Sequence[tuple[int, int]], size: int) -> int:
    if len(text) <= size or not highlights:
        return 0
    best = max(highlights, key=lambda span: (_words(text, highlights, span[0], size * 3 // 4), -span[0]))[0]
    earliest = max(0, min(best - size // 4, len(text) - size))
    ends = [match.end() for match in _SENTENCE_END.finditer(text, max(0, best - size // 4), best)]
    start = ends[0] if ends and earliest else earliest
    while start > 0 and _inside_character(text, start):
        start -= 1
    return start


def _words(text: str, highlights: Sequence[tuple[int, int]], start: int, size: int) -> int:
    return len({text[s:e] for s, e in highlights if start <= s and e <= start + size})


def _inside_character(text: str, at: int) -> bool:
    """Say whether a cut here would part a character from its marks."""
    after, before = text[at], text[at - 1]
    return bool(unicodedata.combining(after)) or after in _JOINERS or before == "\u200d" or after in "ﾞﾟ"
