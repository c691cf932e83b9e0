"""What somebody deletes in the servers behind our back comes back by itself, is counted, and a search finds it."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from weaviate.classes.query import Filter

from ops.stack.server import Endpoint
from pipeline.backends.chunks_weaviate import collection_name
from pipeline.backends.chunks_weaviate_client import WeaviateAddress, WeaviateConnection
from pipeline.backends.chunks_weaviate_objects import DOCUMENT
from pipeline.backends.chunks_weaviate_tokens import key
from pipeline.stack.runtime import StackRuntime
from tests.stack.runtime_api import serving
from tests.stack.test_removals import native
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
LOST, KEPT = "dms/reports/lost", "dms/reports/kept"


@pytest.fixture(params=["fuseki", "oxigraph"])
async def stack(
    request: pytest.FixtureRequest, stack_server: Callable[[str], Endpoint], tmp_path: Path
) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, request.param, tmp_path)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


async def delete_objects(stack: Stack, generation: str, document: str) -> int:
    """Delete a document's objects as anybody can who reaches Weaviate; return how many there were."""
    connection = WeaviateConnection(WeaviateAddress(stack.settings.weaviate, stack.settings.weaviate_grpc))
    collections = (await connection.client()).collections
    collection = collections.use(collection_name("Shinsen", stack.settings.space + generation))
    done = await collection.data.delete_many(Filter.by_property(DOCUMENT).equal(key(document)))
    await connection.close()
    return done.successful


async def drop_graphs(stack: Stack, runtime: StackRuntime) -> None:
    """Drop the named graph of each access class, as anybody can who reaches the SPARQL server."""
    async with runtime.live() as indexes, httpx.AsyncClient() as client:
        for name in {fact.access_class async for fact in indexes.graph.scan()}:
            graph = indexes.graph._space.graph(name).n3()  # type: ignore[attr-defined]
            update = {"update": f"DROP GRAPH {graph}"}
            (await client.post(f"{stack.settings.sparql.rstrip('/')}/update", data=update)).raise_for_status()
        assert await indexes.graph.facts_of([LOST, KEPT]) == []


async def hits(client: httpx.AsyncClient) -> set[str]:
    found = await client.post("/v1/search", json={"query": "荷崩れ HG-7", "top_k": 10})
    return {hit["document"]["key"] for hit in found.json()["hits"]}


async def test_what_is_deleted_in_the_servers_comes_back(stack: Stack) -> None:
    worker = stack.start()
    await stack.publish(
        [native("lost", "機械 HG-7 が荷崩れを起こした。"), native("kept", "機械 HG-8 の荷崩れの記録。")]
    )
    await stack.settled(worker)
    async with serving(stack.settings) as (runtime, client):
        before = await runtime.digest()
        assert await hits(client) == {LOST, KEPT}
        # Ended, so that its next round over all documents begins at its start and not in ten minutes.
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait, 60) == 0, stack.tail()
        async with runtime.live() as indexes:
            assert await delete_objects(stack, indexes.generation, LOST) == 1
        await drop_graphs(stack, runtime)
        assert await hits(client) == {KEPT}
        worker = stack.start()
        async with asyncio.timeout(90):
            while await hits(client) != {LOST, KEPT}:
                assert worker.poll() is None, stack.tail()
                await asyncio.sleep(0.5)
        await stack.settled(worker)
        assert await runtime.digest() == before
        await asyncio.sleep(1)  # figures are kept that long
        metrics = (await client.get("/metrics")).text
        assert 'shinsen_index_repairs_total{store="chunks"} 1.0' in metrics
        assert 'shinsen_index_repairs_total{store="graph"} 2.0' in metrics
    log = stack.log.read_text()
    assert log.count("index_lost_documents") == 2 and LOST in log, stack.tail()
