"""The fixtures that a backend of Graph gives, and facts to put into it."""

from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from pipeline.ports.graph import Graph
from pipeline.steps.iris import fact_iri
from schemas.knowledge import EntityRef, Fact, LiteralValue, Method, Node, Term

OpenGraph = Callable[[], Awaitable[Graph]]
FORKLIFT = EntityRef("concept", "フォークリフト", "フォークリフト")
F17 = EntityRef("id", "f-17", "F-17")


def entity(key: str) -> EntityRef:
    return EntityRef("id", key, key.upper())


def text(value: str) -> LiteralValue:
    return LiteralValue(value)


def fact(
    subject: Node,
    predicate: str,
    value: Term,
    document: str = "cmms/w/1",
    version: str = "v1",
    *,
    access_class: str = "class-a",
    confidence: float = 0.93,
    span: tuple[int, int] | None = None,
    chunk_id: str = "",
    method: Method = "column",
    observed_at: str = "2025-07-08T00:00:00.000000Z",
) -> Fact:
    """Return a fact with its IRI."""
    made = Fact(
        iri="",
        subject=subject,
        predicate=predicate,
        object=value,
        document=document,
        facts_version=version,
        method=method,
        confidence=confidence,
        chunk_id=chunk_id,
        span=span,
        access_class=access_class,
        observed_at=observed_at,
    )
    return msgspec.structs.replace(made, iri=fact_iri(made))


def by_iri(*facts: Fact) -> list[Fact]:
    return sorted(facts, key=lambda one: one.iri)


async def put(graph: Graph, *facts: Fact) -> None:
    """Stage facts, grouped as `stage` wants them."""
    for document, version in dict.fromkeys((one.document, one.facts_version) for one in facts):
        theirs = [one for one in facts if (one.document, one.facts_version) == (document, version)]
        await graph.stage(document, version, theirs)


async def scanned(graph: Graph) -> list[Fact]:
    return [one async for one in graph.scan()]


class GraphFixtures:
    """Subclasses give `open_graph`: it opens one generation's graph, empty at the test's start. Opened
    again after `close`, it is the same graph."""

    @pytest.fixture
    async def open_graph(self) -> OpenGraph:
        raise NotImplementedError

    @pytest.fixture
    async def graph(self, open_graph: OpenGraph) -> AsyncIterator[Graph]:
        graph = await open_graph()
        yield graph
        await graph.close()
