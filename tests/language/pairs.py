"""Pairs of spellings, as documents and as questions, through the analysis and the search of the product."""

import csv
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from api.retrieval.lexical import find_words
from api.retrieval.question import AnalyzedQuestion
from pipeline.ports.chunk_index import ChunkFilter, ChunkIndex
from pipeline.text.lexicon import LexicalAnalysis, Lexicon
from pipeline.text.patterns import load_identifiers
from schemas.document import IndexedChunk
from tests.contracts.chunk_examples import chunk

HERE = Path(__file__).parent


class Pair(msgspec.Struct, frozen=True):
    """Two spellings of a line of a file."""

    line: int
    kind: str
    one: str
    other: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.one} / {self.other}"

    @property
    def documents(self) -> tuple[str, str]:
        return f"pair/{self.line}/one", f"pair/{self.line}/other"


def read(name: str) -> list[Pair]:
    """Return the pairs of a file; every third line was held out while the rules were made."""
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return [Pair(n, r["kind"], r["one"], r["other"]) for n, r in enumerate(csv.DictReader(file))]


@lru_cache(maxsize=1)
def analysis() -> LexicalAnalysis:
    return Lexicon(load_identifiers().patterns).analyzer()


def question(text: str) -> AnalyzedQuestion:
    """Return what the API would make of a question, without a vector."""
    analyzer = analysis()
    return AnalyzedQuestion(
        text=text,
        analysis=analyzer.terms.analyze(text),
        form=analyzer.questions.form(text),
        query_type="short_keyword",
        vector=None,
    )


def chunks_of(pairs: list[Pair]) -> Iterator[IndexedChunk]:
    """Yield one chunk for each spelling, in a sentence of its own."""
    for pair in pairs:
        for document, word in zip(pair.documents, (pair.one, pair.other), strict=True):
            text = f"記録には「{word}」とある。"
            found = msgspec.structs.replace(analysis().terms.analyze(text), mentions=())
            yield chunk(document, document=document, analysis=found, text=text)


async def scores(index: ChunkIndex, asked: str, pair: Pair) -> dict[str, float]:
    """Search the two documents of a pair."""
    where = ChunkFilter(documents=pair.documents)
    return {hit.document: hit.score for hit in await find_words(index, question(asked), where, 10)}


async def both_ways(index: ChunkIndex, pair: Pair) -> list[float]:
    """Return how well each spelling finds the other: against the score of the spelling itself, 0 when not found."""
    shares = []
    for asked, own, other in ((pair.one, *pair.documents), (pair.other, *reversed(pair.documents))):
        found = await scores(index, asked, pair)
        shares.append(found.get(other, 0.0) / found[own] if own in found else 0.0)
    return shares
