"""The composition root of the stack: PostgreSQL, Weaviate, a SPARQL server, Kafka."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from pipeline.agents.announcer import Announcer
from pipeline.agents.journey import Journey
from pipeline.apply import Applier
from pipeline.backends.cache_postgres import PostgresCache
from pipeline.backends.chunks_weaviate import WeaviateChunks
from pipeline.backends.chunks_weaviate_client import WeaviateAddress
from pipeline.backends.graph_sparql import SparqlGraph
from pipeline.backends.graph_sparql_client import SparqlEndpoint
from pipeline.backends.postgres_lock import PostgresLock
from pipeline.backends.state_postgres import open_postgres_state, postgres_state
from pipeline.clock import system_clock
from pipeline.errors import InvalidConfiguration
from pipeline.generations import next_name
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.models import Analyzer, Embedder
from pipeline.ports.state import Generation, State
from pipeline.prepare import Preparer
from pipeline.settings import Settings
from pipeline.steps.chunk import ChunkLimits
from pipeline.wiring import Configuration, open_models, versions
from schemas.topics import Topics, topics


class StackStores(msgspec.Struct, frozen=True):
    """The stores of the live generation."""

    state: State
    generation: str
    chunks: ChunkIndex
    graph: Graph


def stack_topics(settings: Settings) -> Topics:
    """Return the topics that these settings name."""
    return topics(settings.topic_prefix, settings.partitions)


def check_stack_settings(settings: Settings) -> None:
    """Raise InvalidConfiguration naming every address that is missing."""
    needed = {name: getattr(settings, name) for name in ("kafka", "postgres", "weaviate", "sparql")}
    missing = [f"SHINSEN_{name.upper()}" for name, value in needed.items() if not value]
    if missing:
        raise InvalidConfiguration(f"the stack needs {', '.join(missing)}; set them in the environment")


@asynccontextmanager
async def open_stack_stores(settings: Settings, built_with: dict[str, str]) -> AsyncIterator[StackStores]:
    """Open the stores; the first to come makes the first generation."""
    async with AsyncExitStack() as stack:
        database = open_postgres_state(settings.postgres)
        stack.push_async_callback(database.close)
        state = postgres_state(database)
        generation = await live_generation(state, built_with)
        lock = PostgresLock(settings.postgres, f"shinsen graph {settings.space}{generation}")
        stack.push_async_callback(lock.close)
        address = WeaviateAddress(settings.weaviate, settings.weaviate_grpc)
        chunks = WeaviateChunks(address, settings.space + generation)
        stack.push_async_callback(chunks.close)
        base = settings.sparql.rstrip("/")
        graph = SparqlGraph(
            SparqlEndpoint(f"{base}/query", f"{base}/update"), settings.space + generation, exclusive=lock.held
        )
        stack.push_async_callback(graph.close)
        yield StackStores(state, generation, chunks, graph)


async def live_generation(state: State, built_with: dict[str, str]) -> str:
    """Return the live generation's name. Safe when several workers start at once."""
    known = await state.generations()
    live = next((g.name for g in known if g.state == "live"), "")
    if not live:
        live = next_name([])
        await state.create_generation(Generation(name=live, created_at=system_clock(), versions=built_with))
        await state.promote(live)
    return live


@asynccontextmanager
async def open_journey(settings: Settings) -> AsyncIterator[Journey]:
    """Open everything that an indexing agent needs, and close it in order."""
    configuration = Configuration(settings)
    async with AsyncExitStack() as stack:
        models: tuple[Analyzer, Embedder] = await stack.enter_async_context(
            open_models(settings, configuration.identifiers)
        )
        analyzer, embedder = models
        built_with = versions(configuration, analyzer, embedder)
        stores = await stack.enter_async_context(open_stack_stores(settings, built_with))
        cache = PostgresCache(settings.postgres)
        stack.push_async_callback(cache.close)
        announcer = Announcer(settings.kafka, stack_topics(settings))
        stack.push_async_callback(announcer.close)
        await announcer.open()
        limits = ChunkLimits(max_chunks=settings.max_chunks)
        yield Journey(
            state=stores.state,
            mappings=configuration.mappings,
            preparer=Preparer(configuration.mappings, configuration.vocabulary, cache, analyzer, embedder, limits),
            applier=Applier(
                stores.generation,
                stores.state,
                stores.chunks,
                stores.graph,
                configuration.text_facts,
                vector_model=embedder.model,
                announces=True,
            ),
            announcer=announcer,
            max_event=settings.max_event,
            clock=system_clock,
        )
