"""Prepare: everything about a record that needs no store but the cache. Map, chunk, analyze, embed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.mapping import Mappings
from pipeline.passage_vectors import PassageVectors, asked, content_hash, in_parts
from pipeline.ports.cache import Cache
from pipeline.ports.models import Analyzer, Embedder
from pipeline.steps.chunk import ChunkLimits, chunk
from pipeline.steps.map import map_record
from pipeline.steps.vocabulary import Vocabulary
from schemas.change_event import Lane, split_document_key
from schemas.document import Analysis, Stage
from schemas.knowledge import Mention
from schemas.messages import Prepared
from schemas.record import Record

__all__ = ["Prepared", "Preparer", "Refused"]

T = TypeVar("T")
PLAIN = "点検を行った。"
"""What every model can take."""


class Refused(msgspec.Struct, frozen=True):
    """A record that can never be prepared as it is."""

    record: Record
    error: InvalidEvent


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
        *,
        sentences_at_once: int = 0,
    ) -> None:
        self._mappings, self._vocabulary, self._cache, self._limits = mappings, vocabulary, cache, limits
        self._analyzer, self._embedder = analyzer, embedder
        self._vectors = PassageVectors(cache, embedder, sentences_at_once=sentences_at_once)

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
        mentions, _ = await asyncio.gather(self._mentions(texts, lane), self._vectors.make([prepared], lane))
        _complete(prepared, mentions)
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
            _complete(p, [next(spans) for _ in p.chunks])
        return prepared

    async def mention(self, batch: Sequence[Prepared], lane: Lane) -> None:
        """Find the mentions that `analyzed` left missing, for all documents in one call."""
        texts = [c.text for p in batch for c in p.chunks]
        mentions = iter(await self._mentions(texts, lane))
        for p in batch:
            _complete(p, [next(mentions) for _ in p.chunks])

    async def with_cached_vectors(self, batch: Sequence[Prepared]) -> list[Prepared]:
        """Take vectors from the cache; return the documents that lack some."""
        return await self._vectors.look(batch)

    async def embed(self, batch: Sequence[Prepared], lane: Lane) -> None:
        """Make the vectors of documents, in one call."""
        await self._vectors.make(batch, lane)

    async def refine(self, records: Sequence[Record], lane: Lane) -> None:
        """Make the vectors of sentences, for the cache: who prepares these records again finds them there."""
        prepared = await asyncio.to_thread(self._split, records, "full")
        good = [p for p in prepared if isinstance(p, Prepared) and p.document is not None]
        await self._vectors.refine(good, lane)

    @property
    def refines(self) -> bool:
        """Whether sentences get vectors."""
        return self._vectors.of_sentences

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
        mentions = await self._peek(self._mentions_kind, [c.text for p in batch for c in p.chunks])
        lacking = {p.record.document for p in await self._vectors.look(batch)}
        for p in batch:
            spans = [mentions.get(content_hash(c.text)) for c in p.chunks]
            p.missing = None in spans or p.record.document in lacking
            if not p.missing:
                _complete(p, [msgspec.msgpack.decode(s, type=tuple[Mention, ...]) for s in spans if s is not None])

    @property
    def _mentions_kind(self) -> str:
        return f"mentions:{_version(self._analyzer)}"

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
        for part in in_parts(missing):
            computed = dict(zip(part, await asked(compute(part)), strict=True))
            await self._cache.put(kind, {keys[text]: msgspec.msgpack.encode(value) for text, value in computed.items()})
            found.update(computed)
        return found


def _version(analyzer: Analyzer) -> str:
    return f"{analyzer.version}+d{analyzer.dictionary}" if analyzer.dictionary else analyzer.version


def _titles(prepared: Prepared) -> list[str]:
    document = prepared.document
    assert document is not None
    return ["\n".join((document.title, *piece.headings)) for piece in prepared.chunks]


def _complete(prepared: Prepared, mentions: Sequence[tuple[Mention, ...]]) -> None:
    prepared.analyses = [
        msgspec.structs.replace(analysis, mentions=(*analysis.mentions, *more))
        for analysis, more in zip(prepared.analyses, mentions, strict=True)
    ]
    prepared.missing = False
