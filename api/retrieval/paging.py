"""Pages of one search: the order is that of the first page, what may be seen is as of now.

A cursor carries the rest of the order itself (see ops/decisions/paging.md), so nothing is kept for it here, any API
process can go on with it, and a restart does not end it. It is checked like everything from outside: it names chunks,
and whether they stand, match and may be read is asked of the manifests on each page.
"""

import base64
import binascii
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from api.retrieval.passages import Passage, read_passages
from api.retrieval.question import AnalyzedQuestion
from api.retrieval.reader import Reader
from api.retrieval.search import Candidate, SearchPlan, search
from api.retrieval.stages import searched
from pipeline.errors import CursorExpired, InvalidQuery
from schemas.document import Manifest

VERSION = 1
LIFETIME_S = 3600
"""A cursor is good for so long from its first page on."""
MOST_HITS = 1_000
"""Hits of all pages together."""
_MOST_BYTES = 400_000
"""Of an unpacked cursor."""
_TRIES = 3
"""Deeper searches, and second looks, of one page."""
_MARK = 6
"""Bytes that stand for a document or a chunk that was shown; one in 10^8 long lists takes one for another."""


class Ahead(msgspec.Struct, frozen=True, array_like=True):
    """A hit of a later page, as the search had found it."""

    id: str
    document: str
    score: float
    bm25: int | None = None
    dense: int | None = None
    exact: int = 0
    rerank: float | None = None
    named: int = 0


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """What the next page starts from."""

    version: int
    asked: bytes
    """Digest of the question and of everything that decides what it finds."""
    started: int
    """Time of the first page, seconds since 1970."""
    total: int
    shown: bytes
    """Marks of document and chunk of each hit of earlier pages."""
    ahead: tuple[Ahead, ...]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page."""

    passages: list[Passage]
    total: int
    found: list[Candidate] = []
    """All that the search found; empty but for the first page."""
    next: Cursor | None = None


def digest(*parts: object) -> bytes:
    """Return what two requests share that ask for the same."""
    return hashlib.blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=_MARK).digest()


def encode(cursor: Cursor) -> str:
    """Write a cursor for the asker to keep."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.msgpack.encode(cursor))).decode().rstrip("=")


def decode(text: str, asked: bytes, now: float) -> Cursor:
    """Read it back. Raises InvalidQuery where it is none or of another search, CursorExpired when it is old."""
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), _MOST_BYTES)
        (version, *_) = msgspec.msgpack.decode(raw, type=list)
        if version == VERSION:
            cursor = msgspec.msgpack.decode(raw, type=Cursor)
    except (binascii.Error, zlib.error, msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidQuery("This is no cursor; send `next` of the page before, unchanged", pointer="/cursor") from error
    if version != VERSION:
        raise CursorExpired("The cursor is of another version of Shinsen: search again from the first page")
    if cursor.asked != asked:
        raise InvalidQuery("The cursor is of another search: send the same query and filters", pointer="/cursor")
    if not cursor.started <= now <= cursor.started + LIFETIME_S:
        raise CursorExpired(f"The cursor is older than {LIFETIME_S} s: search again from the first page")
    return cursor


async def first_page(reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, asked: bytes, now: float) -> Page:
    """Search, and keep the order of what was found for the pages to come."""
    found, passages = await searched(reader, question, plan)
    ahead = tuple(_ahead(one) for one in found[plan.wanted : MOST_HITS])
    cursor = Cursor(VERSION, asked, int(now), len(found), _marks(found[: plan.wanted]), ahead)
    return Page(passages=passages, total=len(found), found=found, next=cursor if len(found) >= plan.wanted else None)


async def next_page(reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, cursor: Cursor, top_k: int) -> Page:
    """Go on where the cursor stands.

    A hit whose document was deleted, or may not be seen, or does not match any more, is left out. Where the
    document changed, what it holds now stands in the place of the hit. When nothing is left of the first search, a
    deeper one goes on with what no page had.
    """
    line = _Line(reader, question, plan, cursor)
    passages: list[Passage] = []
    while len(passages) < top_k and (some := await line.take(top_k - len(passages))):
        read = await read_passages(reader, some, "vector")
        passages += read
        line.shown += read
        if not reader.chunks_away:  # removed since the look at its manifest: the document has changed again
            line.put_back(one for one in some if one.id not in {passage.candidate.id for passage in read})
    return Page(passages=passages, total=cursor.total, next=line.rest())


class _Line:
    """The hits that wait."""

    def __init__(self, reader: Reader, question: AnalyzedQuestion, plan: SearchPlan, cursor: Cursor) -> None:
        self._reader, self._question, self._plan, self._cursor = reader, question, plan, cursor
        self._ahead = list(cursor.ahead)
        marks = [cursor.shown[at : at + _MARK] for at in range(0, len(cursor.shown), _MARK)]
        self._documents, self._seen = Counter(marks[::2]), set(marks[1::2])
        self._tries = _TRIES
        self.shown: list[Passage] = []

    async def take(self, wanted: int) -> list[Candidate]:
        """Return the next hits that stand, at most `wanted`; none when there are no more."""
        while self._ahead or await self._deeper(wanted):
            some, self._ahead = self._ahead[:wanted], self._ahead[wanted:]
            if found := await self._standing(some):
                self._seen.update(_mark(one.id) for one in found)
                self._documents.update(_mark(one.document) for one in found)
                return found
        return []

    def put_back(self, lost: Iterable[Candidate]) -> None:
        """Let hits be looked at once more."""
        if again := [_ahead(one) for one in lost]:
            self._tries -= 1
            self._seen.difference_update(_mark(one.id) for one in again)
            self._documents.subtract(_mark(one.document) for one in again)
            self._ahead = (again if self._tries > 0 else []) + self._ahead

    def rest(self) -> Cursor | None:
        """Return the cursor of the page after; None when nothing can follow."""
        shown = self._cursor.shown + _marks(passage.candidate for passage in self.shown)
        if not self.shown or len(shown) >= 2 * _MARK * MOST_HITS:
            return None
        return msgspec.structs.replace(self._cursor, shown=shown, ahead=tuple(self._ahead))

    async def _standing(self, some: Sequence[Ahead]) -> list[Candidate]:
        manifests = await self._reader.manifests(one.document for one in some)
        live = {key: m for key, m in manifests.items() if self._plan.where.matches(m, self._reader.asker)}
        moved = [one for one in some if one.document in live and not _names(live[one.document], one.id)]
        instead = await self._instead({one.document for one in moved}, some) if moved else {}
        found: list[Candidate] = []
        for one in some:
            if one.document not in live:
                continue
            if _names(live[one.document], one.id):
                found.append(_candidate(one, live[one.document]))
            elif waiting := instead.get(one.document):
                found.append(msgspec.structs.replace(waiting.pop(0), score=one.score))
        return found

    async def _instead(self, documents: set[str], some: Sequence[Ahead]) -> dict[str, list[Candidate]]:
        """Search in documents that changed, for what no page had and none will have."""
        where = msgspec.structs.replace(self._plan.where, documents=tuple(sorted(documents)))
        plan = msgspec.structs.replace(self._plan, where=where, wanted=len(documents) * self._plan.per_document)
        waiting = {one.id for one in (*some, *self._ahead)}
        found: dict[str, list[Candidate]] = {}
        for one in await search(self._reader, self._question, plan):
            if one.id not in waiting and self._is_new(one):
                found.setdefault(one.document, []).append(one)
        return found

    def _is_new(self, one: Candidate) -> bool:
        """Say whether it is no hit of a page before, nor the new version of one."""
        if _mark(one.id) in self._seen:
            return False
        shown = self._documents[_mark(one.document)]
        unchanged = any(_mark(ref.id) in self._seen for ref in one.manifest.chunks)
        return not shown or (unchanged and shown < self._plan.per_document)

    async def _deeper(self, wanted: int) -> bool:
        """Search for what no page had."""
        if self._tries <= 0:
            return False
        self._tries -= 1
        plan = msgspec.structs.replace(self._plan, wanted=min(MOST_HITS, self._documents.total() + wanted))
        found = await search(self._reader, self._question, plan)
        self._ahead = [_ahead(one) for one in found if self._is_new(one)]
        return bool(self._ahead)


def _names(manifest: Manifest, chunk: str) -> bool:
    return any(ref.id == chunk for ref in manifest.chunks)


def _candidate(one: Ahead, manifest: Manifest) -> Candidate:
    ref = next(ref for ref in manifest.chunks if ref.id == one.id)
    return Candidate(
        id=one.id,
        document=one.document,
        manifest=manifest,
        ref=ref,
        score=one.score,
        bm25=one.bm25,
        dense=one.dense,
        exact=one.exact,
        rerank=one.rerank,
        named=one.named,
    )


def _ahead(one: Candidate) -> Ahead:
    return Ahead(one.id, one.document, round(one.score, 6), one.bm25, one.dense, one.exact, one.rerank, one.named)


def _mark(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_MARK).digest()


def _marks(chunks: Iterable[Candidate]) -> bytes:
    return b"".join(_mark(chunk.document) + _mark(chunk.id) for chunk in chunks)
