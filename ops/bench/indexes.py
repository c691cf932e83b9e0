"""Measure the embedded indexes: `python -m ops.bench.indexes [CHUNKS ...] [--graph FACTS]`.

Synthetic chunks (Zipf-distributed tokens as of 400 Japanese characters, random 384-dimensional
vectors, 50 access classes of which 20 may be read), synthetic facts. Prints one table each.
"""

import argparse
import asyncio
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from pipeline.backends.chunks_sqlite import SqliteChunks
from pipeline.backends.graph_oxigraph import OxigraphGraph
from pipeline.ports.chunk_index import ChunkFilter, LexicalQuery
from pipeline.steps.iris import fact_iri
from schemas.document import Analysis, IndexedChunk
from schemas.knowledge import DocumentRef, EntityRef, Fact, LiteralValue, Node, Term

SEED, ROUNDS, BATCH = 17, 40, 500
TERMS, BIGRAMS, CLASSES, READABLE, PER_DOCUMENT = 90, 280, 50, 20, 5
DIMENSIONS = 384
WHERE = ChunkFilter(access_classes=tuple(f"class-{n}" for n in range(READABLE)))


class Corpus:
    """Makes chunks and questions, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._terms = self._zipf(60_000, 1.0)
        self._bigrams = self._zipf(300_000, 0.85)

    def _zipf(self, size: int, exponent: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        weights = 1 / np.arange(1, size + 1) ** exponent
        return np.cumsum(weights / weights.sum())

    def tokens(self, prefix: str, cumulative: np.ndarray[tuple[int], np.dtype[np.float64]], count: int) -> list[str]:
        """Draw tokens by their frequency."""
        return [f"{prefix}{rank}" for rank in np.searchsorted(cumulative, self._random.random(count))]

    def vector(self) -> bytes:
        """Return a random unit vector."""
        values = self._random.standard_normal(DIMENSIONS).astype("<f4")
        return bytes((values / np.linalg.norm(values)).tobytes())

    def chunk(self, n: int) -> IndexedChunk:
        """Return chunk number n."""
        identifier = f"eq-{n % 5000}"
        terms = (*self.tokens("語", self._terms, TERMS), identifier)
        return IndexedChunk(
            id=f"chunk-{n:07}",
            document=f"bench/chunks/{n // PER_DOCUMENT}",
            text="".join(terms),
            title="題",
            headings=(),
            analysis=Analysis(
                terms=terms, bigrams=tuple(self.tokens("組", self._bigrams, BIGRAMS)), identifiers=(identifier,)
            ),
            title_terms=("題",),
            vector=self.vector(),
            vector_model="bench",
            access_class=f"class-{n % CLASSES}",
            source="bench",
            collection="chunks",
            type="Document",
            updated_at="2025-07-08T00:00:00.000000Z",
        )

    def question(self) -> LexicalQuery:
        """Return a question of 6 words, 16 bigrams and an identifier, drawn as texts are."""
        return LexicalQuery(
            tuple(self.tokens("語", self._terms, 6)),
            tuple(self.tokens("組", self._bigrams, 16)),
            (f"eq-{self._random.integers(5000)}",),
        )


async def timed(calls: Iterator[Callable[[], Awaitable[object]]]) -> str:
    """Run the calls; return p50 and p95 of the time taken and p50 of this process's CPU time, in milliseconds."""
    times, works = [], []
    for call in calls:
        start, work = time.perf_counter(), time.process_time()
        await call()
        times.append((time.perf_counter() - start) * 1e3)
        works.append((time.process_time() - work) * 1e3)
    times.sort()
    return f"{times[len(times) // 2]:.1f} / {times[int(len(times) * 0.95)]:.1f} ({sorted(works)[len(works) // 2]:.1f})"


def megabytes(folder: Path) -> int:
    """Return the size of the files in a folder."""
    return sum(file.stat().st_size for file in folder.iterdir()) >> 20


async def measure_chunks(count: int, folder: Path) -> dict[str, str]:
    """Fill an index with `count` chunks and measure it."""
    corpus, index, spent = Corpus(SEED), SqliteChunks(folder, f"bench{count}"), 0.0
    for start in range(0, count, BATCH):
        batch = [corpus.chunk(n) for n in range(start, min(start + BATCH, count))]
        before = time.perf_counter()
        await index.stage(batch)
        spent += time.perf_counter() - before
    questions = [(corpus.question(), corpus.vector()) for _ in range(ROUNDS)]

    async def hybrid(question: LexicalQuery, vector: bytes) -> None:
        await asyncio.gather(index.lexical(question, WHERE, 50), index.dense(vector, WHERE, 50))

    async def update(n: int) -> None:
        replaced = [msgspec.structs.replace(corpus.chunk(n * PER_DOCUMENT + i), id=f"new-{n}-{i}") for i in range(2)]
        await index.stage(replaced)
        await index.collect({replaced[0].document: tuple(one.id for one in replaced)}, n)

    rows = {
        "load, chunks/s": f"{count / spent:.0f}",
        "lexical, first time": await timed(partial(index.lexical, q, WHERE, 50) for q, _ in questions),
        "lexical": await timed(partial(index.lexical, q, WHERE, 50) for q, _ in questions),
        "dense": await timed(partial(index.dense, v, WHERE, 50) for _, v in questions),
        "dense, everything": await timed(partial(index.dense, v, ChunkFilter(), 50) for _, v in questions),
        "lexical + dense": await timed(partial(hybrid, q, v) for q, v in questions),
        "get 20": await timed(
            partial(index.get, [f"chunk-{(n * 97 + i * 13) % count:07}" for i in range(20)]) for n in range(ROUNDS)
        ),
        "replace a document of 5 by 2": await timed(partial(update, n) for n in range(ROUNDS)),
        "file, MB": f"{megabytes(folder)}",
    }
    await index.drop()
    return rows


def make_fact(subject: Node, predicate: str, value: Term, document: str, version: str, n: int) -> Fact:
    """Return a fact of the benchmark's graph."""
    fact = Fact(
        iri="",
        subject=subject,
        predicate=predicate,
        object=value,
        document=document,
        facts_version=version,
        method="column",
        confidence=0.9,
        chunk_id=f"chunk-{n}",
        span=(n % 300, n % 300 + 4),
        access_class=f"class-{n % CLASSES}",
        observed_at="2025-07-08T00:00:00.000000Z",
    )
    return msgspec.structs.replace(fact, iri=fact_iri(fact))


def document_facts(n: int, version: str) -> list[Fact]:
    """Return six facts of document n: a hub, a label, and four entities that a few documents name."""
    key = f"bench/facts/{n}"
    equipment = EntityRef("id", f"eq-{n}", f"EQ-{n}")
    rows: list[tuple[Node, str, Term]] = [
        (equipment, "is_a", EntityRef("concept", "フォークリフト", "フォークリフト")),
        (equipment, "label", LiteralValue(f"設備 EQ-{n}")),
        *((DocumentRef(key), "mentions", EntityRef("id", f"eq-{(n * 7 + i) % 5000}", "x")) for i in range(4)),
    ]
    return [make_fact(*row, key, version, n) for row in rows]


def two_hops(n: int) -> str:
    """Return the SPARQL question: documents that name equipment n, and what else they name is."""
    return (
        "PREFIX v: <urn:shinsen:v:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> SELECT DISTINCT ?d ?k"
        f' {{ ?e rdfs:label "設備 EQ-{n}" . ?d v:mentions ?e, ?x . ?x v:is_a ?k }} LIMIT 9'
    )


async def measure_graph(count: int, folder: Path) -> dict[str, str]:
    """Fill a graph with about `count` facts and measure it."""
    graph, documents, start = OxigraphGraph(folder, "bench"), count // 6, time.perf_counter()
    for n in range(documents):
        await graph.stage(f"bench/facts/{n}", "v0", document_facts(n, "v0"))
    spent = time.perf_counter() - start
    classes = list(WHERE.access_classes or ())
    hub, choose = EntityRef("concept", "フォークリフト", ""), random.Random(SEED)

    def nodes(size: int) -> list[Node]:
        return [EntityRef("id", f"eq-{choose.randrange(5000)}", "") for _ in range(size)]

    async def update(n: int) -> None:
        await graph.stage(f"bench/facts/{n}", "v1", document_facts(n, "v1"))
        await graph.collect({f"bench/facts/{n}": "v1"}, n)

    async def ask() -> None:
        query = two_hops(choose.randrange(5000))
        await graph.query(query, classes, timeout_s=10, accept="text/csv", max_bytes=1 << 20)

    async def ask_after_write(n: int) -> None:
        await graph.stage(f"bench/facts/{n}", "v2", document_facts(n, "v2")[:1])
        await ask()

    await ask()
    rounds = range(ROUNDS)
    rows = {
        "load, facts/s": f"{documents * 6 / spent:.0f}",
        "facts about 1 node": await timed(lambda: graph.facts_about(nodes(1), classes, 50) for _ in rounds),
        "facts about 10 nodes": await timed(lambda: graph.facts_about(nodes(10), classes, 200) for _ in rounds),
        "facts about a hub": await timed(lambda: graph.facts_about([hub], classes, 50) for _ in rounds),
        "find entities, first time": await timed(lambda: graph.find_entities("EQ-7", classes, 10) for _ in range(1)),
        "find entities": await timed(lambda: graph.find_entities("EQ-7", classes, 10) for _ in rounds),
        "SPARQL, 2 hops": await timed(ask for _ in rounds),
        "SPARQL after a write": await timed(partial(ask_after_write, n) for n in rounds),
        "replace a document's 6 facts": await timed(partial(update, n) for n in rounds),
    }
    await graph.drop()
    return rows


def show(title: str, columns: dict[str, dict[str, str]]) -> None:
    """Print one table."""
    table = Table(title=title)
    table.add_column("ms: p50 / p95 (CPU p50)")
    for name in columns:
        table.add_column(name, justify="right")
    for row in next(iter(columns.values())):
        table.add_row(row, *(rows[row] for rows in columns.values()))
    Console(width=120).print(table)


async def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chunks", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--graph", type=int, default=40_000, help="facts (14 to 17 quads each); 0: none")
    arguments = parser.parse_args()
    print(f"seed {SEED}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.chunks:
            measured = {f"{n:,}": await measure_chunks(n, Path(folder)) for n in arguments.chunks}
            show("Chunk index (SQLite), chunks", measured)
        if arguments.graph:
            rows = await measure_graph(arguments.graph, Path(folder))
            show("Graph (pyoxigraph), facts", {f"{arguments.graph:,}": rows})


if __name__ == "__main__":
    asyncio.run(main())
