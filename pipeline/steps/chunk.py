"""Chunking: a document's body cut into passages at headings and sentences, with exact offsets."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from pipeline.errors import InvalidEvent
from pipeline.steps.headings import Section, sections
from schemas.document import Chunk, Document

CHUNKER_VERSION = "1"
"""Changes when the same document gets other chunks."""

_BOUNDARY = re.compile(r"(?:[。！？!?]+|．(?![0-9０-９])|\.(?=\s))[」』）)】〕》〉”’\"']*|[\r\n]\s*")
_VISIBLE = re.compile(r"\S")
_SOFT_CUT = re.compile(r"[、,，;；:：\s]")


class ChunkLimits(msgspec.Struct, frozen=True):
    """Sizes in characters. 600 characters of Japanese are about 400 tokens of multilingual-e5, whose limit is 512."""

    target: int = 400
    maximum: int = 600
    longest_overlap: int = 150
    """A last sentence longer than this is not repeated in the next chunk."""
    max_chunks: int = 2000


DEFAULT_LIMITS = ChunkLimits()


def chunk(document: Document, limits: ChunkLimits = DEFAULT_LIMITS) -> list[Chunk]:
    """Cut the body; every character that is not white space is in at least one chunk, in reading order.

    A chunk never crosses a heading (a heading with nothing under it goes with the deeper one that
    follows); inside a section that is split, the last sentence is repeated at the start of the next
    chunk. `text == body[start:end]`. A body of white space gives one empty chunk at 0, so that the
    title stays searchable, or none without a title. Raises InvalidEvent("too_many_chunks") before
    any chunk is built.
    """
    if not document.body.strip():
        spans = [(0, 0, ())] if document.title.strip() else []
        return _build(document, spans)
    return _build(document, _counted(document, limits))


def _counted(document: Document, limits: ChunkLimits) -> list[tuple[int, int, tuple[str, ...]]]:
    at_least = sum(map(len, document.body.split())) // limits.maximum
    spans: list[tuple[int, int, tuple[str, ...]]] = []
    if at_least <= limits.max_chunks:
        for span in _spans(document.body, limits):
            spans.append(span)
            if len(spans) > limits.max_chunks:
                break
    if at_least > limits.max_chunks or len(spans) > limits.max_chunks:
        reason = (
            f"{document.key} has more than {limits.max_chunks} chunks "
            f"({len(document.body)} characters): split the record or raise max_chunks"
        )
        raise InvalidEvent("too_many_chunks", reason, document=document.key)
    return spans


def _spans(body: str, limits: ChunkLimits) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    for section in _joined(sections(body)):
        for start, end in _pack(body, section.start, section.end, limits):
            yield start, end, section.headings


def _joined(parts: Iterable[Section]) -> Iterator[Section]:
    """Put a heading with nothing under it before the deeper section that follows."""
    waiting: Section | None = None
    for part in parts:
        if waiting and len(part.headings) > len(waiting.headings):
            part = msgspec.structs.replace(part, start=waiting.start)  # noqa: PLW2901
        elif waiting:
            yield waiting
        waiting = part if part.only_heading else None
        if not waiting:
            yield part
    if waiting:
        yield waiting


def _pack(body: str, start: int, end: int, limits: ChunkLimits) -> Iterator[tuple[int, int]]:
    """Fill chunks with whole sentences up to the target; a short rest of the section goes with the last."""
    last_text = start + len(body[start:end].rstrip())
    at = stop = start
    previous = (start, start)
    for sentence in _sentences(body, start, end, limits.maximum):
        if stop > at and not _fits(at, stop, sentence[1], last_text, limits):
            yield at, stop
            overlaps = stop - previous[0] <= limits.longest_overlap and sentence[1] - previous[0] <= limits.maximum
            at = previous[0] if overlaps and previous[0] > at else sentence[0]
        elif stop == at:
            at = sentence[0]
        previous = sentence
        stop = sentence[1]
    if stop > at:
        yield at, stop


def _fits(at: int, stop: int, new_stop: int, last_text: int, limits: ChunkLimits) -> bool:
    if new_stop - at > limits.maximum:
        return False
    return new_stop - at <= limits.target or last_text - at <= (limits.target + limits.maximum) // 2


def _sentences(body: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield spans of sentences without white space around them, none longer than `longest`."""
    done = start
    for match in _BOUNDARY.finditer(body, start, end):
        yield from _trimmed(body, done, match.end(), longest)
        done = match.end()
    yield from _trimmed(body, done, end, longest)


def _trimmed(body: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    text = body[start:end]
    start += len(text) - len(text.lstrip())
    end = start + len(text.strip())
    while end - start > longest:
        cut = _cut(body, start, longest)
        yield start, start + len(body[start:cut].rstrip())
        visible = _VISIBLE.search(body, cut)
        start = visible.start() if visible else end
    if end > start:
        yield start, end


def _cut(body: str, start: int, longest: int) -> int:
    """Cut a sentence that is too long after a comma or a space in its last third, else hard."""
    hard = start + longest
    cut = hard
    for match in _SOFT_CUT.finditer(body, hard - longest // 3, hard):
        cut = match.end()
    return cut


def _build(document: Document, spans: Iterable[tuple[int, int, tuple[str, ...]]]) -> list[Chunk]:
    prefix = hashlib.sha256(_bytes(document.key)).hexdigest()[:16]
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for ordinal, (start, end, headings) in enumerate(spans):
        text = document.body[start:end]
        content = _digest(document.title, *headings, text)
        chunks.append(
            Chunk(
                id=f"{prefix}-{content}-{seen[content]}",
                document=document.key,
                ordinal=ordinal,
                start=start,
                end=end,
                text=text,
                headings=headings,
            )
        )
        seen[content] += 1
    return chunks


def _digest(*parts: str) -> str:
    """Hash parts with their lengths, so that no two lists of parts run together."""
    digest = hashlib.sha256()
    for part in parts:
        data = _bytes(part)
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:24]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
