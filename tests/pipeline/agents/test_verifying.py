"""What an index has lost of what it had accepted is noticed by the sweep, put back, counted and told."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ops.stack.server import Endpoint
from pipeline.agents import verifying
from pipeline.agents.sweeping import EVERY_S
from pipeline.agents.verifying import ROUND_EVERY_S, Verification
from pipeline.apply import Applier
from pipeline.backends.chunks_weaviate import WeaviateChunks
from pipeline.backends.chunks_weaviate_client import WeaviateAddress
from pipeline.digest import digest
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.generations import Generation
from pipeline.ports.graph import Graph
from pipeline.writer_marks import LEASE_S
from tests.differential.events import ALIASES, GROUPS, KINDS, SENTENCES, Change, history
from tests.differential.running import running
from tests.pipeline.agents.test_sweeping import Watched, published
from tests.pipeline.test_appliers import GONE, MACHINE, REPORT, Away, Writers, advance


class Published:
    """A ledger entry and a report in real stores, the indexes within reach of somebody who breaks them."""

    def __init__(self, runtime: EmbeddedRuntime, writers: Writers, applier: Any) -> None:
        self.runtime, self.writers, self.applier, self.generation = runtime, writers, applier, applier.generation
        self.chunks: ChunkIndex = applier._chunks
        self.graph: Graph = applier._graph
        self.machine = self.report = ""

    async def digest(self) -> dict[str, str]:
        return await digest(self.runtime.state, self.generation, self.chunks, self.graph)

    async def repaired(self) -> dict[str, int]:
        counts = await self.runtime.state.counts(self.generation)
        return {name: number for name, number in counts.items() if name.startswith("repaired")}

    async def again(self, *documents: str) -> None:
        await self.writers.to_the_end(self.applier, await self.writers.prepared(documents))

    async def first_chunk(self, document: str) -> str:
        return (await self.runtime.state.manifests(self.generation, [document]))[document].chunks[0].id


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Published]:
    async with running(tmp_path) as runtime:
        writers = Writers(runtime)
        stores = Published(runtime, writers, writers.another("own"))
        stores.machine, stores.report = await published(runtime, writers, stores.applier)
        yield stores


async def test_what_is_whole_is_left_alone(stores: Published) -> None:
    *_, gone = history([MACHINE, REPORT, GONE])
    await stores.again(await advance(stores.runtime, 3, gone))
    watched = Watched(stores.runtime, stores.applier, lag=0)
    assert await watched.looks(2 * ROUND_EVERY_S) == []
    assert await stores.repaired() == {}


async def test_a_lost_chunk_is_told_counted_and_put_back(stores: Published) -> None:
    before = await stores.digest()
    lost = await stores.first_chunk(stores.report)
    kept = [c.id async for c in stores.chunks.scan() if c.document == stores.report and c.id != lost]
    await stores.chunks.collect({stores.report: tuple(kept)}, 1)
    watched = Watched(stores.runtime, stores.applier, lag=0)
    with capture_logs() as logs:
        assert await watched.looks(4 * EVERY_S) == [[stores.report]]
    [told] = [one for one in logs if one["event"] == "index_lost_documents"]
    assert (told["log_level"], told["generation"], told["index"]) == ("warning", stores.generation, "chunks")
    assert (told["documents"], told["first"]) == (1, stores.report) and "log" in told["advice"]
    await stores.again(stores.report)
    assert await stores.digest() == before
    assert await stores.repaired() == {"repaired.chunks": 1}
    assert await watched.looks(2 * ROUND_EVERY_S) == []


async def test_lost_facts_are_put_back(stores: Published) -> None:
    before = await stores.digest()
    await stores.graph.collect({stores.report: "", stores.machine: ""}, 1)
    assert await stores.graph.triples() == []
    watched = Watched(stores.runtime, stores.applier, lag=0)
    assert await watched.looks(4 * EVERY_S) == [sorted([stores.machine, stores.report])]
    await stores.again(stores.machine, stores.report)
    assert await stores.digest() == before
    assert await stores.repaired() == {"repaired.graph": 2}


async def test_what_stands_of_a_deleted_document_is_removed(stores: Published) -> None:
    chunks = [chunk async for chunk in stores.chunks.scan() if chunk.document == stores.report]
    facts = await stores.graph.facts_of([stores.report])
    *_, gone = history([MACHINE, REPORT, GONE])
    await stores.again(await advance(stores.runtime, 3, gone))
    await stores.chunks.stage(chunks)  # as a writer does that stood still until now
    await stores.graph.stage(stores.report, facts[0].facts_version, facts)
    watched = Watched(stores.runtime, stores.applier, lag=0)
    assert await watched.looks(4 * EVERY_S) == [[stores.report]]
    await stores.again(stores.report)
    assert await stores.chunks.held([stores.report]) == set()
    assert await stores.graph.facts_of([stores.report]) == []
    assert await stores.repaired() == {"repaired.chunks": 1, "repaired.graph": 1}


async def test_all_pages_are_looked_at_and_rounds_have_a_pause(
    stores: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "PAGE", 1)
    watched = Watched(stores.runtime, stores.applier, lag=0)
    await watched.looks(3 * EVERY_S)  # the last page of the first round is empty
    last = max(stores.machine, stores.report)
    await stores.chunks.collect({last: ()}, 1)
    assert await watched.looks(ROUND_EVERY_S - 4 * EVERY_S) == []
    assert await watched.looks(5 * EVERY_S) == [[last]]


async def test_a_page_names_a_bounded_number_of_chunks(stores: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "CHUNKS", 1)
    verification = Verification(stores.generation, stores.runtime.state, stores.chunks, stores.graph)
    last = max(stores.machine, stores.report)
    await stores.chunks.collect({last: ()}, 1)
    assert [await verification.look() for _ in range(2)] == [0, 1]


async def test_under_load_that_never_ends_losses_are_found_too(stores: Published) -> None:
    watched = Watched(stores.runtime, stores.applier, lag=7)
    await stores.graph.collect({stores.report: ""}, 1)
    assert await watched.looks(3 * LEASE_S) == [[stores.report]]


async def test_a_rebuild_under_way_is_not_compared(stores: Published) -> None:
    await stores.runtime.state.create_generation(Generation(name="trial", created_at="2025-07-08T00:00:00Z"))
    trial: Applier = stores.writers.another("trial")
    trial.generation = "trial"
    await stores.writers.to_the_end(trial, await stores.writers.prepared([stores.report]))
    await stores.chunks.collect({stores.report: ()}, 1)
    watched = Watched(stores.runtime, trial, lag=0)
    assert await watched.looks(30) == []
    await stores.runtime.state.promote("trial")
    assert await watched.looks(3 * EVERY_S) == [[stores.report]]


class SlowToRead:
    """A state store of which a page of manifests arrives when documents have changed."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def collected_manifests(self, generation: str, **named: Any) -> Any:
        page = await self._real.collected_manifests(generation, **named)
        await asyncio.sleep(0.02)
        return page


async def test_a_load_without_losses_counts_none(stores: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers publish the same documents while page after page is compared."""
    monkeypatch.setattr(verifying, "PAGE", 2)
    one, two = (stores.writers.another(name) for name in ("one", "two"))
    state: Any = SlowToRead(stores.runtime.state)
    verification = Verification(stores.generation, state, stores.chunks, stores.graph, round_every_s=0.0)

    async def look() -> None:
        while True:
            await verification.look()

    looking = asyncio.create_task(look())
    for number, event in enumerate(history([MACHINE, REPORT, *_changes(random.Random(20250708))]), 1):
        if number > 2:
            batch = await stores.writers.prepared([await advance(stores.runtime, number, event)])
            await asyncio.gather(*(stores.writers.to_the_end(writer, batch) for writer in (one, two)))
    assert not looking.done()
    looking.cancel()
    await asyncio.wait([looking])
    assert await stores.repaired() == {}


def _changes(draw: random.Random) -> Iterator[Change]:
    """Yield changes of four reports and of the machine whose names they hold."""
    for _ in range(30):
        key, kind = f"r{draw.randrange(4)}", draw.random()
        if kind < 0.2:
            yield Change("machine", "F-17", (draw.choice(ALIASES), draw.choice(KINDS), draw.choice(GROUPS), "1.50"))
        elif kind < 0.3:
            yield Change("report_gone", key)
        else:
            yield Change("report", key, (tuple(draw.sample(SENTENCES, 3)), draw.choice(GROUPS), "田中"))


async def test_what_is_being_removed_is_not_compared(stores: Published) -> None:
    await stores.runtime.state.create_generation(Generation(name="next", created_at="2025-07-08T00:00:00Z"))
    await stores.runtime.state.promote("next")
    watched = Watched(stores.runtime, stores.applier, lag=0)
    await stores.runtime.state.begin_prune(stores.generation)
    await stores.chunks.collect({stores.report: ()}, 1)
    assert await watched.looks(30) == []
    assert await stores.repaired() == {}


async def test_while_an_index_is_away_the_sweep_goes_on(stores: Published) -> None:
    away = Away(stores.chunks, "missing")
    applier = stores.writers.another("other", chunks=away)
    watched = Watched(stores.runtime, applier, lag=0)
    await stores.runtime.state.mark_relinks(stores.generation, [stores.report])
    assert [stores.report] in await watched.looks(3 * EVERY_S)
    await stores.again(stores.report)
    await stores.chunks.collect({stores.report: ()}, 1)
    with capture_logs() as logs:
        assert await watched.looks(4 * LEASE_S) == []
    assert 2 <= [one["event"] for one in logs].count("not_verified") <= 5
    away.back = True
    assert [stores.report] in await watched.looks(2 * LEASE_S)


@pytest.mark.stack
async def test_a_collection_that_somebody_dropped_is_made_again_and_filled(
    stores: Published, stack_server: Callable[[str], Endpoint]
) -> None:
    """The writer and the check are those of before: no worker is started again."""
    at = stack_server("weaviate")
    address, name = WeaviateAddress(at.url, f"{at.host}:{at.ports['grpc']}"), f"t{uuid.uuid4().hex[:12]}"
    index = WeaviateChunks(address, name)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(index.drop)
        await index.stage([chunk async for chunk in stores.chunks.scan()])
        applier = stores.writers.another("other", chunks=index)
        before = {chunk.id: chunk async for chunk in index.scan()}
        await WeaviateChunks(address, name).drop()
        watched = Watched(stores.runtime, applier, lag=0)
        assert await watched.looks(4 * EVERY_S) == [sorted([stores.machine, stores.report])]
        await stores.writers.to_the_end(applier, await stores.writers.prepared([stores.machine, stores.report]))
        assert {chunk.id: chunk async for chunk in index.scan()} == before
        assert await stores.repaired() == {"repaired.chunks": 2}
