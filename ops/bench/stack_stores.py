"""How fast each store of the stack takes the same contents by itself, with nothing around it.

Weaviate: the chunks with vectors, ready as the client's objects, into a collection of the same schema, by the client's
own batch of as many as the adapter writes, from as many tasks as there are workers. SPARQL: the insertions, ready as
text, in requests as large as the adapter's, one after the other (it has one writer). PostgreSQL: the rows of
the manifests, 64 a statement, each committed. Rates are documents a second.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Any, TypeVar

import msgspec
import psycopg

from ops.bench.stack_installation import FIRST, Installation
from pipeline.backends.chunks_weaviate import WRITE_BATCH
from pipeline.backends.chunks_weaviate_client import WeaviateAddress, WeaviateConnection
from pipeline.backends.chunks_weaviate_objects import create_collection, to_objects
from pipeline.backends.graph_sparql_client import SparqlClient, SparqlEndpoint
from pipeline.backends.graph_sparql_space import Space
from pipeline.backends.graph_sparql_writes import UPDATES_PER_REQUEST
from pipeline.stack_wiring import open_stack_stores
from schemas.document import IndexedChunk
from schemas.knowledge import Fact

T = TypeVar("T")
ROWS = 64
COLUMNS = "document, position, collected, stage, revision, op, body"


class Contents(msgspec.Struct, frozen=True):
    """What the first generation holds."""

    manifests: list[tuple[Any, ...]]
    """Rows of the table, without the generation."""
    chunks: list[IndexedChunk]
    by_document: list[list[Fact]]

    @property
    def facts(self) -> int:
        """How many there are."""
        return sum(map(len, self.by_document))


async def contents(one: Installation) -> Contents:
    """Read the first generation back from the stores."""
    async with open_stack_stores(one.settings, {}) as stores:
        chunks = [chunk async for chunk in stores.chunks.scan()]
        facts = [fact async for fact in stores.graph.scan()]
    facts.sort(key=lambda fact: fact.document)
    async with await psycopg.AsyncConnection.connect(one.settings.postgres) as connection:
        found = await connection.execute(
            f"SELECT {COLUMNS} FROM manifests WHERE generation = %s ORDER BY document",  # noqa: S608 - our own names
            (FIRST,),
        )
        rows = await found.fetchall()
    return Contents(rows, chunks, [list(group) for _, group in groupby(facts, key=lambda fact: fact.document)])


async def raw_rates(one: Installation, held: Contents, at_once: int) -> dict[str, float]:
    """Return documents a second of each store; what is written is removed again."""
    name = f"{one.settings.space}raw{uuid.uuid4().hex[:6]}"
    count = len(held.manifests)
    return {
        "weaviate": count / await _weaviate(one, f"Shinsen_{name}", held.chunks, at_once),
        "sparql": count / await _sparql(one, name, held.by_document),
        "postgres": count / await _postgres(one, name, held.manifests),
    }


async def _weaviate(one: Installation, name: str, chunks: Sequence[IndexedChunk], at_once: int) -> float:
    connection = WeaviateConnection(WeaviateAddress(one.settings.weaviate, one.settings.weaviate_grpc))
    client = await connection.client()
    await create_collection(client, name)
    parts = _cut(to_objects(chunks), WRITE_BATCH)

    async def write(mine: list[Any]) -> None:
        for part in mine:
            done = await client.collections.use(name).data.insert_many(part)
            if done.has_errors:
                raise SystemExit(f"Weaviate refused: {next(iter(done.errors.values())).message}")

    try:
        return await _timed(lambda: asyncio.gather(*(write(parts[n::at_once]) for n in range(at_once))))
    finally:
        await client.collections.delete(name)
        await connection.close()


async def _sparql(one: Installation, name: str, by_document: Sequence[list[Fact]]) -> float:
    base = one.settings.sparql.rstrip("/")
    client, space = SparqlClient(SparqlEndpoint(f"{base}/query", f"{base}/update")), Space(name)
    updates = [space.insertion(facts) for facts in by_document]
    requests = [" ;\n".join(part) for part in _cut(updates, UPDATES_PER_REQUEST)]

    async def write() -> None:
        for request in requests:
            await client.update(request)

    try:
        return await _timed(write)
    finally:
        classes = {fact.access_class for facts in by_document for fact in facts}
        await client.update(space.drop(space.graph(one).value for one in classes))
        await client.close()


async def _postgres(one: Installation, name: str, rows: Sequence[tuple[Any, ...]]) -> float:
    async with await psycopg.AsyncConnection.connect(one.settings.postgres, autocommit=True) as connection:

        async def write() -> None:
            for part in _cut([(name, *row) for row in rows], ROWS):
                marks = ", ".join(["(" + ", ".join(["%s"] * len(part[0])) + ")"] * len(part))
                await connection.execute(
                    f"INSERT INTO manifests (generation, {COLUMNS}) VALUES {marks}",  # noqa: S608 - our own names
                    [value for row in part for value in row],
                )

        try:
            return await _timed(write)
        finally:
            await connection.execute("DELETE FROM manifests WHERE generation = %s", (name,))


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def _cut(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
