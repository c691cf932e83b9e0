"""Hybrid search through `POST /v1/search` without the embedding, at growing sizes: synthetic text and vectors.

`python -m ops.bench.query [SIZES ...] [--seed N]`. Chunks and manifests are written straight into the
stores (no models run); the stub embedder makes the question's vector in microseconds.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import httpx

from api.app import create_app
from ops.bench.corpus import PARTS, SIGNS, SITES, event
from ops.bench.report import machine, percentile, say, spread
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from schemas.access import access_rule
from schemas.document import ChunkRef, IndexedChunk, Manifest
from schemas.position import UPSERT, Position

BATCH = 500
QUERIES = 120


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
            chunks, manifests = [], []
            for item, analysis, title, vector in zip(items, analyses, titles, vectors, strict=True):
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


async def ask(client: httpx.AsyncClient) -> list[float]:
    """Return the milliseconds of each question; the first ones warm the caches and are not counted."""
    times = []
    for number, question in enumerate(questions()):
        started = time.perf_counter()
        answer = await client.post("/v1/search", json={"query": question, "top_k": 10})
        took = (time.perf_counter() - started) * 1000
        if answer.status_code != 200 or not json.loads(answer.content)["hits"]:
            raise RuntimeError(f"no hits for {question}: {answer.text[:300]}")
        if number >= QUERIES // 6:
            times.append(took)
    return times


async def main() -> None:
    """Grow the index and ask the same questions at each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=5)
    arguments = parser.parse_args()
    say(f"ops.bench.query seed {arguments.seed}; synthetic text and vectors", machine())
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder), analyzer="ginza", embedder="stub")
        async with open_embedded(settings) as runtime:
            transport = httpx.ASGITransport(create_app(runtime, settings))  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                done, first = 0, 0.0
                for size in arguments.sizes:
                    await fill(runtime, done, size, arguments.seed)
                    times, done = await ask(client), size
                    p95 = percentile(times, 0.95)
                    first = first or p95
                    say(f"{size:>7} chunks, ms: {spread(times)}; p95 is {p95 / first:.2f} times the first size's")
    say("GOAL: p95 at 10,000 chunks <= 15 ms")


if __name__ == "__main__":
    asyncio.run(main())
