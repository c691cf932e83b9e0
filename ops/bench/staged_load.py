"""A first load of many documents: how fast their text is searchable, what a reader sees meanwhile, and memory.

`python -m ops.bench.staged_load [--documents N] [--seed N]`. Real analyzer and embedder. The run ends
when all text is searchable and a just-asked document is full; the rest of the vectors would take minutes.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from api.app import create_app
from ops.bench.corpus import events
from ops.bench.ingest import raw
from ops.bench.report import machine, peak_memory_mib, say
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import Backpressure
from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from schemas.change_event import RawEvent

BATCH = 200


async def publish(runtime: EmbeddedRuntime, made: Sequence[RawEvent]) -> int:
    """Hand in all events in batches, waiting where the door says so; return how often it did."""
    waits = 0
    for start in range(0, len(made), BATCH):
        while True:
            try:
                await runtime.submit(made[start : start + BATCH])
                break
            except Backpressure as error:
                waits += 1
                await asyncio.sleep(error.retry_after)
    return waits


async def watch(runtime: EmbeddedRuntime, count: int, started: float) -> float:
    """Say how far the load is until all text is searchable; return the seconds that took."""
    shown = 0
    while True:
        counts = await runtime.state.counts((await runtime.state.generations())[-1].name)
        marks = await runtime.watermarks()
        if counts["documents"] >= count and marks.pending_text == 0:
            return time.perf_counter() - started
        if counts["documents"] >= shown + count // 10:
            shown = counts["documents"]
            say(f"  {time.perf_counter() - started:7.1f} s: {shown} searchable, {counts['full']} of them full")
        await asyncio.sleep(0.2)


async def ask(client: httpx.AsyncClient, query: str) -> tuple[str, str, str]:
    """Return the first hit's key and stage, and the watermark of the chunks."""
    found = (await client.post("/v1/search", json={"query": query, "top_k": 3})).json()
    fresh = (await client.get("/v1/freshness")).json()
    hit = found["hits"][0]
    return hit["document"]["key"], hit["stage"], str(fresh["watermarks"]["chunks"])


async def main() -> None:
    """Load, watch, ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=3)
    arguments = parser.parse_args()
    say(f"ops.bench.staged_load seed {arguments.seed}", machine())
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder))
        async with open_embedded(settings) as runtime:
            await runtime.analyzer.tokens(["準備"])  # the dictionary is loaded once, not per document
            made = [raw(item) for item in events(arguments.documents, arguments.seed)]
            started = time.perf_counter()
            publishing = asyncio.create_task(publish(runtime, made))
            seconds = await watch(runtime, arguments.documents, started)
            waits = await publishing
            say(
                f"{arguments.documents} documents searchable by text in {seconds:.1f} s; told to wait {waits} times",
                f"RATE text: {arguments.documents / seconds:.0f} documents/s (goal >= 200)",
                f"peak memory of the main process: {peak_memory_mib():.0f} MiB (goal < 1536)",
            )
            transport = httpx.ASGITransport(create_app(runtime, settings))  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                await hurried(client)


async def hurried(client: httpx.AsyncClient) -> None:
    """Ask for an old document of the backlog and wait until it is full, while thousands wait."""
    key, stage, watermark = await ask(client, "点検報告 17")
    say(f"first hit: {key} at stage {stage}; chunks complete up to {watermark}")
    started = time.perf_counter()
    while stage != "full" and time.perf_counter() - started < 120:
        await asyncio.sleep(0.2)
        path = f"/v1/documents/{key}"
        stage = (await client.get(path)).json()["document"]["stage"]
    status = (await client.get("/v1/status")).json()
    say(
        f"asked for, it was {stage} after {time.perf_counter() - started:.1f} s, "
        f"with {status['pending']['documents']} documents still waiting for vectors and facts"
    )


if __name__ == "__main__":
    asyncio.run(main())
