"""Hybrid search through `POST /v1/search` without the embedding, at growing sizes: synthetic text and vectors.

`python -m ops.bench.query [SIZES ...] [--seed N]`. Chunks and manifests are written straight into the
stores (no models run); the vectors of the questions are made before, and kept as a server keeps those of the last ones.
Every question is asked in three ways, one after the other: of the bare engine (the chunk index's two lists of 50, side
by side), and as a request without and with the second stage. Processor time is that of this process and of the model
workers, all threads.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from litestar import Litestar

from api.app import create_app
from api.retrieval.question import AnalyzedQuestion, analyze_question
from ops.bench.corpus import PARTS, SIGNS, SITES, event
from ops.bench.report import machine, percentile, say
from pipeline.backends.embedder_kept import KeptQuestions
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.logs import log_at
from pipeline.ports.chunk_index import ChunkFilter
from pipeline.settings import Settings
from pipeline.steps.sentence_vectors import MOST_SENTENCES, packed
from pipeline.text.sentences import sentences
from pipeline.wiring import open_embedded
from schemas.access import access_rule
from schemas.document import ChunkRef, IndexedChunk, Manifest
from schemas.position import UPSERT, Position

BATCH = 500
QUERIES = 120
LISTED = 50
"""Hits of each list: what a request for ten hits asks for."""
Costs = dict[str, list[tuple[float, float]]]
"""Milliseconds of processor time and by the clock of each question, by the way it was asked."""


def questions() -> list[str]:
    """Return questions of two to four content words."""
    return [
        f"{SITES[n % len(SITES)]}の{PARTS[n % len(PARTS)]}で{SIGNS[n // 3 % len(SIGNS)]}が起きた原因は何か"
        for n in range(QUERIES)
    ]


async def fill(runtime: EmbeddedRuntime, start: int, stop: int, seed: int) -> None:
    """Write documents of one chunk each."""
    rule = access_rule(["public"])
    await runtime.state.remember_classes([rule])
    async with runtime.live() as indexes:
        for first in range(start, stop, BATCH):
            items = [event(n, seed) for n in range(first, min(first + BATCH, stop))]
            bodies = [item["record"]["body"] for item in items]
            analyses = await runtime.analyzer.tokens(bodies)
            titles = await runtime.analyzer.tokens([item["record"]["title"] for item in items])
            vectors = await runtime.embedder.passages(bodies)
            of_sentences = [await _sentence_vectors(runtime, body) for body in bodies]
            chunks, manifests = [], []
            parts = zip(items, analyses, titles, vectors, of_sentences, strict=True)
            for item, analysis, title, vector, its_sentences in parts:
                document = f"bench/reports/{item['key']}"
                chunks.append(
                    IndexedChunk(
                        id=f"{item['key']}-0",
                        document=document,
                        text=item["record"]["body"],
                        title=item["record"]["title"],
                        headings=(),
                        analysis=analysis,
                        title_terms=title.terms,
                        vector=vector,
                        vector_model=runtime.embedder.model,
                        sentence_vectors=its_sentences,
                        access_class=rule.access_class(),
                        source="bench",
                        collection="reports",
                        type="Document",
                        updated_at="2025-04-01T00:00:00.000000Z",
                    )
                )
                manifests.append(_manifest(document, f"{item['key']}-0", item))
            await indexes.chunks.stage(chunks)
            await runtime.state.commit(indexes.generation, manifests)


async def _sentence_vectors(runtime: EmbeddedRuntime, body: str) -> bytes:
    texts = [one.text for one in islice(sentences(body), MOST_SENTENCES)]
    return b"".join(map(packed, await runtime.embedder.passages(texts)))


def _manifest(document: str, chunk: str, item: dict[str, dict[str, str]]) -> Manifest:
    return Manifest(
        document=document,
        op="upsert",
        position=Position(0, 1, UPSERT, "0" * 16).sort_key(),
        version="1",
        stage="full",
        title=item["record"]["title"],
        type="Document",
        updated_at="2025-04-01T00:00:00.000000Z",
        access=access_rule(["public"]),
        chunks=(ChunkRef(chunk, 0, len(item["record"]["body"])),),
    )


async def post(app: Litestar, body: Mapping[str, Any]) -> bytes:
    """Ask the application itself: a client in this process would count as the search's cost."""
    raw = json.dumps(body).encode()
    received = iter([{"type": "http.request", "body": raw, "more_body": False}])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(received, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(raw))}
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/v1/search",
        "raw_path": b"/v1/search",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    await app(scope, receive, send)
    answer = b"".join(message.get("body", b"") for message in sent)
    if sent[0]["status"] != 200 or not answer.startswith(b'{"hits":[{'):  # reading it would count, too
        raise RuntimeError(f"no hits for {body}: {answer[:300]!r}")
    return answer


async def bare(runtime: EmbeddedRuntime, question: AnalyzedQuestion) -> None:
    """Ask the engine alone."""
    async with runtime.live() as indexes:
        await asyncio.gather(
            indexes.chunks.lexical(question.lexical, ChunkFilter(), LISTED),
            indexes.chunks.dense(question.vector or b"", ChunkFilter(), LISTED),
        )


def processor_ms() -> float:
    """Return the processor time of this process and of its children that live."""
    children = [Path(f"/proc/{pid}/task") for pid in _children()]
    waiting = sum(int((task / "schedstat").read_text().split()[0]) for child in children for task in child.iterdir())
    return time.process_time() * 1000 + waiting / 1e6


def _children() -> list[str]:
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return [pid for task in tasks for pid in (task / "children").read_text().split()]


async def ask(runtime: EmbeddedRuntime, app: Litestar, asked: list[AnalyzedQuestion]) -> Costs:
    """Ask every question in each way."""
    ways: dict[str, Callable[[AnalyzedQuestion], Awaitable[Any]]] = {
        "bare engine": lambda question: bare(runtime, question),
        "without second stage": lambda question: post(app, {"query": question.text, "top_k": 10, "rerank": False}),
        "with second stage": lambda question: post(app, {"query": question.text, "top_k": 10}),
    }
    costs: Costs = {way: [] for way in ways}
    for question in asked:
        for way, call in ways.items():
            spent, started = processor_ms(), time.perf_counter()
            await call(question)
            took = (time.perf_counter() - started) * 1000
            costs[way].append((processor_ms() - spent, took))
    return costs


def tell(title: str, costs: Costs) -> None:
    """Print medians and 95th percentiles, and what they are of the bare engine's."""
    say(title)
    engine = statistics.median(spent for spent, _ in costs["bare engine"])
    for way, found in costs.items():
        spent, took = [one for one, _ in found], [one for _, one in found]
        say(
            f"  {way:<21} processor p50 {statistics.median(spent):6.2f} ms = {statistics.median(spent) / engine:.2f} x"
            f" the engine's, p95 {percentile(spent, 0.95):6.2f}; clock p50 {statistics.median(took):6.2f},"
            f" p95 {percentile(took, 0.95):6.2f}"
        )


async def main() -> None:
    """Grow the index and ask the same questions at each size: once to warm up, then what counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    log_at("info")  # as a server does: a line to standard error for each request
    say(f"ops.bench.query seed {arguments.seed}; synthetic text and vectors", machine())
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder), analyzer="ginza", embedder="stub")
        async with open_embedded(settings) as runtime:
            runtime.embedder = KeptQuestions(runtime.embedder)
            app, done = create_app(runtime, settings), 0
            for size in arguments.sizes:
                await fill(runtime, done, size, arguments.seed)
                done = size
                asked = [await analyze_question(runtime, text) for text in questions()]
                warm = QUERIES // 6
                await ask(runtime, app, asked[:warm])
                tell(f"{size:>7} chunks, each question for the first time", await ask(runtime, app, asked[warm:]))
                tell(f"{size:>7} chunks, the same questions again", await ask(runtime, app, asked[warm:]))
    say("GOALS: processor time at most 2.0 times the engine's; p95 at 10,000 chunks <= 15 ms")


if __name__ == "__main__":
    asyncio.run(main())
