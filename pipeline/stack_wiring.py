"""The composition root of the stack: PostgreSQL, Weaviate, a SPARQL server, Kafka."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from pipeline.agents.outbox import Outbox
from pipeline.backends.bounded_database import BoundedDatabase
from pipeline.backends.cache_postgres import PostgresCache
from pipeline.backends.chunks_weaviate import WeaviateChunks
from pipeline.backends.chunks_weaviate_client import WeaviateAddress
from pipeline.backends.graph_sparql import SparqlGraph
from pipeline.backends.graph_sparql_client import SparqlEndpoint
from pipeline.backends.http_probe import HttpProbe
from pipeline.backends.postgres_lock import PostgresLock
from pipeline.backends.state_postgres import open_postgres_state, postgres_state
from pipeline.clock import system_clock
from pipeline.errors import InvalidConfiguration
from pipeline.generations import next_name
from pipeline.mapping import Mappings
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.generations import Indexes
from pipeline.ports.graph import Graph
from pipeline.ports.state import Generation, State
from pipeline.ranking import ranking_for
from pipeline.replay.kafka_supply import Installation, KafkaSupply
from pipeline.replay.replays import StateReplays
from pipeline.second_stage_wiring import join_models
from pipeline.settings import Settings
from pipeline.settling import Settling
from pipeline.stack.door import StackDoor
from pipeline.stack.generations import StackGenerations
from pipeline.stack.lag import LagReader
from pipeline.stack.outcomes import OutcomeFollower
from pipeline.stack.runtime import StackRuntime
from pipeline.stack.signals import StackSignals, StackStages
from pipeline.stack.sources import SourcePlaces
from pipeline.wiring import Configuration, open_models, versions
from schemas.topics import Topics, topics

API_CONNECTIONS = 8
"""To PostgreSQL, of one API process."""
API_LIMIT_S = 10.0
"""Seconds that one call to a store may take before whoever asked is told that it does not answer."""


class StackStores(msgspec.Struct, frozen=True):
    """The stores of the live generation."""

    state: State
    generation: str
    chunks: ChunkIndex
    graph: Graph


def stack_topics(settings: Settings) -> Topics:
    """Return the topics that these settings name."""
    return topics(settings.topic_prefix, settings.partitions, settings.max_event)


def check_stack_settings(settings: Settings) -> None:
    """Raise InvalidConfiguration naming every address that is missing."""
    needed = {name: getattr(settings, name) for name in ("kafka", "postgres", "weaviate", "sparql")}
    missing = [f"SHINSEN_{name.upper()}" for name, value in needed.items() if not value]
    if missing:
        raise InvalidConfiguration(f"the stack needs {', '.join(missing)}; set them in the environment")


class OpenIndexes(msgspec.Struct, frozen=True):
    """The indexes of one generation, for a process that writes them."""

    chunks: ChunkIndex
    graph: Graph
    lock: PostgresLock

    async def close(self) -> None:
        """Let go of connections."""
        await self.graph.close()
        await self.chunks.close()
        await self.lock.close()


def open_indexes(settings: Settings, generation: str) -> OpenIndexes:
    """Return a generation's indexes; they connect at the first use."""
    lock = PostgresLock(settings.postgres, f"shinsen graph {settings.space}{generation}")
    address = WeaviateAddress(settings.weaviate, settings.weaviate_grpc)
    base = settings.sparql.rstrip("/")
    endpoint = SparqlEndpoint(f"{base}/query", f"{base}/update")
    graph = SparqlGraph(endpoint, settings.space + generation, exclusive=lock.held)
    return OpenIndexes(WeaviateChunks(address, settings.space + generation), graph, lock)


@asynccontextmanager
async def open_state(settings: Settings) -> AsyncIterator[State]:
    """Open the state store."""
    database = open_postgres_state(settings.postgres)
    try:
        yield postgres_state(database)
    finally:
        await database.close()


@asynccontextmanager
async def open_stack_stores(settings: Settings, built_with: dict[str, str]) -> AsyncIterator[StackStores]:
    """Open the stores of the live generation; the first to come makes the first generation."""
    async with AsyncExitStack() as stack:
        state = await stack.enter_async_context(open_state(settings))
        generation = await live_generation(state, built_with)
        indexes = open_indexes(settings, generation)
        stack.push_async_callback(indexes.close)
        yield StackStores(state, generation, indexes.chunks, indexes.graph)


async def live_generation(state: State, built_with: dict[str, str]) -> str:
    """Return the live generation's name. Safe when several workers start at once."""
    known = await state.generations()
    live = next((g.name for g in known if g.state == "live"), "")
    if not live:
        live = next_name([])
        await state.create_generation(Generation(name=live, created_at=system_clock(), versions=built_with))
        await state.promote(live, system_clock())
    return live


@asynccontextmanager
async def open_stack_runtime(settings: Settings) -> AsyncIterator[StackRuntime]:
    """Open what the API needs in front of the stack, and close it in order. Several processes may.

    Stores that are down are no error here: the requests that need them say so.
    """
    check_stack_settings(settings)
    configuration = Configuration(settings)
    async with AsyncExitStack() as stack:
        analyzer, embedder = await stack.enter_async_context(open_models(settings, configuration.lexicon))
        database = open_postgres_state(settings.postgres, connections=API_CONNECTIONS)
        stack.push_async_callback(database.close)
        state = postgres_state(BoundedDatabase(database, API_LIMIT_S))
        generations = StackGenerations(state, lambda name: _read_only(settings, name))
        signals = _signals(settings, state, generations, _probes(settings, stack))
        generations.why_away = lambda: signals.why_away("weaviate")
        settling = Settling(state, generations.live_name)
        topics = stack_topics(settings)
        runtime = StackRuntime(
            state=state,
            mappings=configuration.mappings,
            analyzer=analyzer,
            embedder=embedder,
            generations=generations,
            signals=signals,
            settling=settling,
            follower=OutcomeFollower(settings.kafka, topics.outcomes.name, settling.progressed, signals.times),
            door=_door(settings, state, configuration.mappings, signals),
            places=SourcePlaces(settings.kafka, topics, settings.source_topics, state),
            replays=_replays(settings, postgres_state(database), versions(configuration, analyzer, embedder), stack),
            versions=versions(configuration, analyzer, embedder),
            clock=system_clock,
        )
        cache = PostgresCache(settings.postgres)
        stack.push_async_callback(cache.close)
        runtime.ranking = ranking_for(configuration.ranking, embedder.model)
        join_models(runtime, settings, cache, stack)
        stack.push_async_callback(runtime.close)
        await runtime.open()
        yield runtime


def _replays(settings: Settings, state: State, built_with: dict[str, str], stack: AsyncExitStack) -> StateReplays:
    """Return what rebuilds generations. Its looks at whole tables may take longer than a question's."""
    named = Installation(settings.kafka, stack_topics(settings), settings.topic_prefix, settings.partitions)
    outbox, lag = Outbox(settings.kafka, named.topics), LagReader(settings.kafka, system_clock)
    stack.push_async_callback(outbox.close)
    stack.push_async_callback(lag.close)
    stages = StackStages(named.topics, settings.topic_prefix, settings.partitions, settings.source_topics)
    supply = KafkaSupply(named, outbox, lag, stages, lambda name: _whole(settings, name), system_clock)
    return StateReplays(state, supply, lambda: built_with, system_clock)


@asynccontextmanager
async def _whole(settings: Settings, generation: str) -> AsyncIterator[Indexes]:
    """Open a generation's indexes, to be read from end to end or removed."""
    indexes = open_indexes(settings, generation)
    try:
        yield Indexes(generation, indexes.chunks, indexes.graph)
    finally:
        await indexes.close()


def _read_only(settings: Settings, generation: str) -> tuple[ChunkIndex, Graph]:
    """Open a generation's indexes for a process that answers questions: it gives up sooner than a worker."""
    address = WeaviateAddress(settings.weaviate, settings.weaviate_grpc, API_LIMIT_S)
    base = settings.sparql.rstrip("/")
    endpoint = SparqlEndpoint(f"{base}/query", f"{base}/update", API_LIMIT_S)
    return WeaviateChunks(address, settings.space + generation), SparqlGraph(endpoint, settings.space + generation)


def _probes(settings: Settings, stack: AsyncExitStack) -> dict[str, HttpProbe]:
    sparql = f"{settings.sparql.rstrip('/')}/query"
    probes = {
        "weaviate": HttpProbe("Weaviate", f"{settings.weaviate.rstrip('/')}/v1/.well-known/ready"),
        "sparql": HttpProbe("the SPARQL server", sparql, form={"query": "ASK {}"}),
    }
    for probe in probes.values():
        stack.push_async_callback(probe.close)
    return probes


def _signals(
    settings: Settings, state: State, generations: StackGenerations, probes: dict[str, HttpProbe]
) -> StackSignals:
    stages = StackStages(stack_topics(settings), settings.topic_prefix, settings.partitions, settings.source_topics)
    reader = LagReader(settings.kafka, system_clock)
    return StackSignals(state, generations.live_name, reader, stages, probes, system_clock)


def _door(settings: Settings, state: State, mappings: Mappings, signals: StackSignals) -> StackDoor:
    return StackDoor(
        settings.kafka,
        stack_topics(settings),
        settings.topic_prefix,
        state=state,
        mappings=mappings,
        waiting=signals.reconciling,
        max_event=settings.max_event,
        max_backlog=settings.max_backlog,
        clock=system_clock,
    )
