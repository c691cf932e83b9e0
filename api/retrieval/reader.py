"""One request's view of the indexes: pinned generation, the asker's classes, and what is live now."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from api.retrieval.access import Asker, permitted_classes
from api.retrieval.question import AnalyzedQuestion
from pipeline.ports.reranker import RerankPassage, RerankQuestion
from pipeline.ports.runtime import Indexes, Runtime
from schemas.document import Manifest
from schemas.knowledge import Fact, Node
from schemas.query import DocumentInfo


class Reader:
    """Reads for one asker; every document and fact it returns is live and permitted."""

    def __init__(self, runtime: Runtime, indexes: Indexes, asker: Asker, classes: tuple[str, ...] | None) -> None:
        """Keep what the request is bound to."""
        self.runtime, self.indexes, self.asker, self.classes = runtime, indexes, asker, classes
        self.chunks_away = False
        """True once the chunk index did not answer this request: then it is not waited for again."""
        self.other_model = ""
        """Says why the generation's vectors cannot be compared with the question's; empty when they can."""
        self.notes: list[str] = []
        """What went wrong while reading without failing the request, for the answer's warnings."""
        self.named: Mapping[str, tuple[str, ...]] = {}
        """Documents that each asked identifier names, as the last search found."""
        self.rest: AnalyzedQuestion | None = None
        """The question without its identifiers, where these name documents."""
        self.rerank_s = 0.0
        """Seconds that the second stage took."""
        self.explained: Callable[[], tuple[RerankQuestion, dict[str, RerankPassage]]] | None = None
        """Says what the second stage was asked, by chunk; None when there was none."""

    @property
    def generation(self) -> str:
        """The pinned generation."""
        return self.indexes.generation

    async def manifests(self, documents: Iterable[str]) -> dict[str, Manifest]:
        """Return the committed manifests of documents that are there and that the asker may read."""
        keys = sorted(set(documents))
        if not keys:
            return {}
        found = await self.runtime.state.manifests(self.generation, keys)
        may_read = self.asker.may_read
        return {key: manifest for key, manifest in found.items() if may_read(manifest)}

    async def facts_about(self, nodes: Sequence[Node], limit: int) -> list[Fact]:
        """Return the live facts about these nodes that the asker may read."""
        if not nodes:
            return []
        return await self.live_facts(await self.indexes.graph.facts_about(nodes, self.classes, limit))

    async def live_facts(self, facts: Sequence[Fact]) -> list[Fact]:
        """Keep the facts whose document stands at the version they were read from."""
        allowed = [fact for fact in facts if self.classes is None or fact.access_class in self.classes]
        manifests = await self.manifests(fact.document for fact in allowed)
        return [
            fact
            for fact in allowed
            if fact.document in manifests and manifests[fact.document].facts_version == fact.facts_version
        ]


@asynccontextmanager
async def open_reader(runtime: Runtime, asker: Asker) -> AsyncIterator[Reader]:
    """Pin the live generation for this request."""
    async with runtime.live() as indexes:
        reader = Reader(runtime, indexes, asker, await permitted_classes(runtime.state, asker))
        reader.other_model = await _other_model(runtime, indexes.generation)
        yield reader


async def _other_model(runtime: Runtime, generation: str) -> str:
    built = await runtime.state.embedder(generation)
    if built is None or built == runtime.embedder.model or not runtime.embedder.model:
        return ""
    return f"the indexes have vectors of {built or 'no model'}, not of {runtime.embedder.model}: found by words only"


def document_info(manifest: Manifest) -> DocumentInfo:
    """Return what is told of a document beside a hit."""
    return DocumentInfo(
        key=manifest.document,
        title=manifest.title,
        version=manifest.version,
        position=manifest.position,
        updated_at=manifest.updated_at,
        type=manifest.type,
        stage=manifest.stage,
    )
