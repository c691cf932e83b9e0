"""Prepare: everything about a record that needs no store but the cache. Map, chunk, analyze, embed."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from pipeline.errors import BackendUnavailable, InvalidEvent, ModelFailed
from pipeline.mapping import Mappings
from pipeline.ports.cache import Cache
from pipeline.ports.models import Analyzer, Embedder
from pipeline.steps.chunk import ChunkLimits, chunk
from pipeline.steps.map import map_record
from pipeline.steps.vocabulary import Vocabulary
from pipeline.text.embeddable import passage_text
from schemas.change_event import Lane, split_document_key
from schemas.document import Analysis, Chunk, Document, Stage
from schemas.knowledge import Mention
from schemas.messages import Prepared
from schemas.record import Record

__all__ = ["Prepared", "Preparer", "Refused", "content_hash", "passage"]

T = TypeVar("T")
KEPT_AFTER = 128
"""Texts after which what the models made is kept: a document of thousands of passages goes on there after a restart."""
PLAIN = "点検を行った。"
"""What every model can take."""


class Refused(msgspec.Struct, frozen=True):
    """A record that can never be prepared as it is."""

    record: Record
    error: InvalidEvent


def content_hash(text: str) -> str:
    """Return the cache key of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def passage(document: Document, piece: Chunk) -> str:
    """Return what is embedded."""
    return passage_text(document.title, piece.headings, piece.text)


class Preparer:
    """Runs the pure steps for batches of records, with all model work cached by content and version."""

    def __init__(
        self,
        mappings: Mappings,
        vocabulary: Vocabulary,
        cache: Cache,
        analyzer: Analyzer,
        embedder: Embedder,
        limits: ChunkLimits,
    ) -> None:
        self._mappings, self._vocabulary, self._cache, self._limits = mappings, vocabulary, cache, limits
        self._analyzer, self._embedder = analyzer, embedder

    async def light(self, records: Sequence[Record], stage: Stage, lane: Lane) -> list[Prepared | Refused]:
        """Map, chunk and tokenize; take mentions and vectors from the cache as far as they are there."""
        prepared = await asyncio.to_thread(self._split, records, stage)
        good = [p for p in prepared if isinstance(p, Prepared) and p.document is not None]
        await self._tokenize(good, lane)
        if stage == "full":
            await self._from_cache(good)
        return prepared

    async def heavy(self, prepared: Prepared, lane: Lane) -> Prepared:
        """Do the model work that the cache did not have; analysis and embedding run side by side."""
        document = prepared.document
        if document is None or not prepared.missing:
            return prepared
        texts = [piece.text for piece in prepared.chunks]
        passages = [passage(document, piece) for piece in prepared.chunks]
        mentions, vectors = await asyncio.gather(self._mentions(texts, lane), self._vectors(passages, lane))
        _complete(prepared, mentions, vectors)
        return prepared

    async def analyzed(self, records: Sequence[Record], lane: Lane, beside: int = 0) -> list[Prepared | Refused]:
        """Like `light` at stage full, without a look for vectors; `missing` says that mentions are.

        Where no more than `beside` documents miss mentions, these are found at once, beside the tokens.
        """
        prepared = await asyncio.to_thread(self._split, records, "full")
        good = [p for p in prepared if isinstance(p, Prepared) and p.document is not None]
        known = await self._peek(self._mentions_kind, [c.text for p in good for c in p.chunks])
        for p in good:
            p.missing = any(content_hash(c.text) not in known for c in p.chunks)
        few = sum(p.missing for p in good) <= beside
        whole = [p for p in good if few or not p.missing]
        texts = [c.text for p in whole for c in p.chunks]
        _, mentions = await asyncio.gather(self._tokenize(good, lane), self._mentions(texts, lane, known))
        spans = iter(mentions)
        for p in whole:
            _complete(p, [next(spans) for _ in p.chunks], [])
        return prepared

    async def mention(self, batch: Sequence[Prepared], lane: Lane) -> None:
        """Find the mentions that `analyzed` left missing, for all documents in one call."""
        texts = [c.text for p in batch for c in p.chunks]
        mentions = iter(await self._mentions(texts, lane))
        for p in batch:
            _complete(p, [next(mentions) for _ in p.chunks], [])

    async def with_cached_vectors(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """Take vectors from the cache; return the documents that lack some."""
        lacking = [p for p in batch if self._lacks_vectors(p)]
        known = await self._peek(self._vectors_kind, [text for p in lacking for text in _passages(p)])
        for p in lacking:
            vectors = [known.get(content_hash(text)) for text in _passages(p)]
            if None not in vectors:
                p.vectors = [v for v in vectors if v is not None]
        return [p for p in lacking if self._lacks_vectors(p)]

    def _lacks_vectors(self, prepared: Prepared) -> bool:
        return bool(self._embedder.model) and len(prepared.vectors) < len(prepared.chunks)

    async def embed(self, batch: Sequence[Prepared], lane: Lane) -> None:
        """Make the vectors of documents, in one call."""
        vectors = iter(await self._vectors([text for p in batch for text in _passages(p)], lane))
        for p in batch:
            p.vectors = [next(vectors) for _ in p.chunks]

    async def models_work(self) -> bool:
        """Say whether the models take a plain text: then a failure is the other text's fault."""
        try:
            await self._analyzer.mentions([PLAIN])
            if self._embedder.model:
                await self._embedder.passages([PLAIN])
        except BackendUnavailable:
            return False
        return True

    def _split(self, records: Sequence[Record], stage: Stage) -> list[Prepared | Refused]:
        return [self._split_one(record, stage) for record in records]

    def _split_one(self, record: Record, stage: Stage) -> Prepared | Refused:
        if record.op == "delete":
            return Prepared(record=record, stage="full")
        source, collection, _ = split_document_key(record.document)
        try:
            document = map_record(record, self._mappings.of(source, collection), self._vocabulary)
            chunks = chunk(document, self._limits)
        except InvalidEvent as error:
            return Refused(record, error)
        return Prepared(record=record, stage=stage, document=document, chunks=chunks)

    async def _tokenize(self, batch: Sequence[Prepared], lane: Lane) -> None:
        titles = {p.record.document: _titles(p) for p in batch}
        texts = [c.text for p in batch for c in p.chunks] + [t for ts in titles.values() for t in ts]
        kind = f"tokens:{_version(self._analyzer)}"
        found = await self._cached(kind, texts, lambda missing: self._analyzer.tokens(missing, lane=lane), Analysis)
        for p in batch:
            p.analyses = [found[c.text] for c in p.chunks]
            p.title_terms = [found[title].terms for title in titles[p.record.document]]

    async def _from_cache(self, batch: Sequence[Prepared]) -> None:
        texts = [c.text for p in batch for c in p.chunks]
        passages = [passage(p.document, c) for p in batch if p.document for c in p.chunks]
        mentions = await self._peek(self._mentions_kind, texts)
        vectors = await self._peek(self._vectors_kind, passages) if self._embedder.model else {}
        for p in batch:
            document = p.document
            assert document is not None
            spans = [mentions.get(content_hash(c.text)) for c in p.chunks]
            dense = [vectors.get(content_hash(passage(document, c))) for c in p.chunks]
            p.missing = None in spans or (bool(self._embedder.model) and None in dense)
            if not p.missing:
                decoded = [msgspec.msgpack.decode(s, type=tuple[Mention, ...]) for s in spans if s is not None]
                _complete(p, decoded, [v for v in dense if v is not None])

    @property
    def _mentions_kind(self) -> str:
        return f"mentions:{_version(self._analyzer)}"

    @property
    def _vectors_kind(self) -> str:
        return f"vectors:{self._embedder.model}"

    async def _mentions(
        self, texts: Sequence[str], lane: Lane, known: dict[str, bytes] | None = None
    ) -> list[tuple[Mention, ...]]:
        """`known`: what the cache has, where it was asked already."""
        found = await self._cached(
            self._mentions_kind,
            texts,
            lambda missing: self._analyzer.mentions(missing, lane=lane),
            tuple[Mention, ...],
            known,
        )
        return [found[text] for text in texts]

    async def _vectors(self, passages: Sequence[str], lane: Lane) -> list[bytes]:
        if not self._embedder.model:
            return []
        keys = {text: content_hash(text) for text in passages}
        known = await self._cache.get(self._vectors_kind, list(keys.values()))
        missing = [text for text, key in keys.items() if key not in known]
        for part in _parts(missing):
            computed = await _asked(self._embedder.passages(part, lane=lane))
            fresh = {keys[text]: vector for text, vector in zip(part, computed, strict=True)}
            await self._cache.put(self._vectors_kind, fresh)
            known = known | fresh
        return [known[keys[text]] for text in passages]

    async def _peek(self, kind: str, texts: Sequence[str]) -> dict[str, bytes]:
        if not texts:
            return {}
        return await self._cache.get(kind, [content_hash(text) for text in dict.fromkeys(texts)])

    async def _cached(
        self,
        kind: str,
        texts: Sequence[str],
        compute: Callable[[Sequence[str]], Awaitable[list[T]]],
        of: type[T],
        known: dict[str, bytes] | None = None,
    ) -> dict[str, T]:
        keys = {text: content_hash(text) for text in texts}
        if known is None:
            known = await self._cache.get(kind, list(keys.values()))
        found = {text: msgspec.msgpack.decode(known[key], type=of) for text, key in keys.items() if key in known}
        missing = [text for text in keys if text not in found]
        for part in _parts(missing):
            computed = dict(zip(part, await _asked(compute(part)), strict=True))
            await self._cache.put(kind, {keys[text]: msgspec.msgpack.encode(value) for text, value in computed.items()})
            found.update(computed)
        return found


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (texts[start : start + KEPT_AFTER] for start in range(0, len(texts), KEPT_AFTER))


async def _asked(answer: Awaitable[T]) -> T:
    """Return what a model answers; its failure is told apart from one of the cache."""
    try:
        return await answer
    except BackendUnavailable as error:
        raise ModelFailed(str(error)) from error


def _passages(prepared: Prepared) -> list[str]:
    document = prepared.document
    return [passage(document, piece) for piece in prepared.chunks] if document is not None else []


def _version(analyzer: Analyzer) -> str:
    return f"{analyzer.version}+d{analyzer.dictionary}" if analyzer.dictionary else analyzer.version


def _titles(prepared: Prepared) -> list[str]:
    document = prepared.document
    assert document is not None
    return ["\n".join((document.title, *piece.headings)) for piece in prepared.chunks]


def _complete(prepared: Prepared, mentions: Sequence[tuple[Mention, ...]], vectors: list[bytes]) -> None:
    prepared.analyses = [
        msgspec.structs.replace(analysis, mentions=(*analysis.mentions, *more))
        for analysis, more in zip(prepared.analyses, mentions, strict=True)
    ]
    prepared.vectors = vectors
    prepared.missing = False
