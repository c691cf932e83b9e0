"""The vectors of documents' passages and of their sentences: from the cache, else from the embedder."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from pipeline.errors import BackendUnavailable, ModelFailed
from pipeline.ports.cache import Cache
from pipeline.ports.models import Embedder
from pipeline.steps.sentence_vectors import MOST_SENTENCES, packed
from pipeline.text.embeddable import passage_text
from pipeline.text.sentences import sentences
from schemas.change_event import Lane
from schemas.document import Chunk, Document
from schemas.messages import Prepared

T = TypeVar("T")
SENTENCES_VERSION = "1"
"""Of how sentences are found and kept."""
KEPT_AFTER = 128
"""Texts after which what the models made is kept: a document of thousands of passages goes on there after a restart."""


def content_hash(text: str) -> str:
    """Return the cache key of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def passage(document: Document, piece: Chunk) -> str:
    """Return what is embedded of a chunk as a whole."""
    return passage_text(document.title, piece.headings, piece.text)


def passage_sentences(document: Document, piece: Chunk) -> list[str]:
    """Return what is embedded of its sentences, each under title and headings; nothing where one is all there is."""
    some = islice(sentences(piece.text), MOST_SENTENCES)
    found = [passage_text(document.title, piece.headings, one.text) for one in some]
    return found if len(found) > 1 else []


def in_parts(texts: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield parts of KEPT_AFTER."""
    return (texts[start : start + KEPT_AFTER] for start in range(0, len(texts), KEPT_AFTER))


async def asked(answer: Awaitable[T]) -> T:
    """Return what a model answers; its failure is told apart from one of the cache."""
    try:
        return await answer
    except BackendUnavailable as error:
        raise ModelFailed(str(error)) from error


class _Place(NamedTuple):
    """Where a vector is cached."""

    kind: str
    key: str


class _Wanted(NamedTuple):
    """What is to be embedded of a chunk: the texts by the places of their vectors."""

    passage: _Place
    sentences: list[_Place]
    texts: dict[_Place, str]


class PassageVectors:
    """Gives prepared documents their vectors. Without a model none has any.

    Nothing waits for the vectors of sentences: a document gets those that the cache has, and is `unrefined` while it
    lacks some. See pipeline/refining.py.
    """

    def __init__(self, cache: Cache, embedder: Embedder, *, sentences_at_once: int) -> None:
        """`sentences_at_once`: so many sentences are embedded beside each other; 0: none has a vector."""
        self.of_sentences = sentences_at_once > 0 and bool(embedder.model)
        self._cache, self._embedder, self._at_once = cache, embedder, max(1, sentences_at_once)

    def lacking(self, prepared: Prepared) -> bool:
        """Say whether a document has yet to get its vectors."""
        return bool(self._embedder.model) and len(prepared.vectors) < len(prepared.chunks)

    async def look(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """Take vectors from the cache; return the documents that it has not all of."""
        lacking = [p for p in batch if self.lacking(p)]
        if not lacking:
            return []
        wanted = await asyncio.to_thread(self._wanted, lacking)
        known = await self._known(wanted)
        return [p for p, its in zip(lacking, wanted, strict=True) if not self._filled(p, its, known)]

    async def make(self, batch: Sequence[Prepared], lane: Lane) -> None:
        """Make the vectors of documents' passages, all in one call of the embedder as far as KEPT_AFTER goes."""
        lacking = [p for p in batch if self.lacking(p)]
        if not lacking:
            return
        wanted = await asyncio.to_thread(self._wanted, lacking)
        known = await self._known(wanted)
        passages = {one.passage: one.texts[one.passage] for one in chain(*wanted)}
        known |= await self._embedded({place: text for place, text in passages.items() if place not in known}, lane)
        for p, its in zip(lacking, wanted, strict=True):
            self._filled(p, its, known)

    async def refine(self, batch: Sequence[Prepared], lane: Lane) -> None:
        """Make the vectors of documents' sentences, for the cache: who prepares these documents again finds them.

        Each is a call of its own and few are under way: a change that arrives waits for no more than one sentence.
        """
        wanted = await asyncio.to_thread(self._wanted, batch)
        known = await self._known(wanted)
        texts = {place: one.texts[place] for one in chain(*wanted) for place in one.sentences if place not in known}
        left = list(texts.items())
        for start in range(0, len(left), self._at_once):
            part = left[start : start + self._at_once]
            made = (self._embedded({place: text}, lane) for place, text in part)
            for failed in [
                one for one in await asyncio.gather(*made, return_exceptions=True) if not isinstance(one, dict)
            ]:
                raise failed

    async def _embedded(self, texts: Mapping[_Place, str], lane: Lane) -> dict[_Place, bytes]:
        made: dict[_Place, bytes] = {}
        for part in in_parts(list(texts)):
            vectors = await asked(self._embedder.passages([texts[place] for place in part], lane=lane))
            fresh = {
                place: vector if place.kind == self._passages_kind else packed(vector)
                for place, vector in zip(part, vectors, strict=True)
            }
            await self._keep(fresh)
            made |= fresh
        return made

    @property
    def _passages_kind(self) -> str:
        return f"vectors:{self._embedder.model}"

    def _wanted(self, batch: Sequence[Prepared]) -> list[list[_Wanted]]:
        return [[self._of(p.document, piece) for piece in p.chunks] for p in batch if p.document is not None]

    def _of(self, document: Document, piece: Chunk) -> _Wanted:
        whole = passage(document, piece)
        parts = passage_sentences(document, piece) if self.of_sentences else []
        first = _Place(self._passages_kind, content_hash(whole))
        rest = [_Place(f"sentences{SENTENCES_VERSION}:{self._embedder.model}", content_hash(text)) for text in parts]
        return _Wanted(first, rest, {first: whole, **dict(zip(rest, parts, strict=True))})

    async def _known(self, wanted: Sequence[Sequence[_Wanted]]) -> dict[_Place, bytes]:
        keys: dict[str, dict[str, None]] = defaultdict(dict)
        for place in chain.from_iterable(one.texts for one in chain(*wanted)):
            keys[place.kind][place.key] = None
        found = {kind: await self._cache.get(kind, list(its)) for kind, its in keys.items()}
        return {_Place(kind, key): vector for kind, its in found.items() for key, vector in its.items()}

    async def _keep(self, fresh: dict[_Place, bytes]) -> None:
        kinds: dict[str, dict[str, bytes]] = defaultdict(dict)
        for place, vector in fresh.items():
            kinds[place.kind][place.key] = vector
        for kind, its in kinds.items():
            await self._cache.put(kind, its)

    def _filled(self, prepared: Prepared, wanted: Sequence[_Wanted], known: Mapping[_Place, bytes]) -> bool:
        """Give a document its vectors, if those of all its passages are known."""
        if not all(one.passage in known for one in wanted):
            return False
        prepared.vectors = [known[one.passage] for one in wanted]
        if self.of_sentences:
            whole = [all(place in known for place in one.sentences) for one in wanted]
            prepared.sentence_vectors = [
                b"".join(known[place] for place in one.sentences) if all_of_it else b""
                for one, all_of_it in zip(wanted, whole, strict=True)
            ]
            prepared.unrefined = not all(whole)
        return True
