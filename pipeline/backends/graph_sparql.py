"""The knowledge graph on any SPARQL 1.1 server (Fuseki, Oxigraph server), several generations on one."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext

import pyoxigraph as ox

from pipeline.backends.graph_sparql_client import RESULTS, TRIPLES, Answer, SparqlClient, SparqlEndpoint
from pipeline.backends.graph_sparql_reads import FactReader
from pipeline.backends.graph_sparql_space import SPACE_PREFIX, Space
from pipeline.backends.graph_sparql_writes import Exclusive, GroupWriter
from pipeline.backends.sparql_child import SOLUTION_FORMATS, TRIPLE_FORMATS
from pipeline.backends.sparql_pool import SparqlPool
from pipeline.errors import InvalidQuery
from schemas.knowledge import Fact, Node

PAGE = 250
"""Facts that a scan reads at a time."""
FACTS_PER_UPDATE = 5_000
JSON_OVER_RESULT = 16
"""How many times larger than the result in the asked format the server's JSON may be."""
NOTHING = SPACE_PREFIX + "nothing"
"""A graph that nobody writes: a request without any graph would read the whole dataset."""


class SparqlGraph:
    """Implements Graph. Connects at the first call.

    Writers must not overlap: Oxigraph's server does not serialize them, and a triple's support would
    be judged over a state that is no more. Within the process a lock sees to it, between processes
    `exclusive`. The server must stop queries by itself (Oxigraph: `--timeout-s`; Fuseki takes ours).
    """

    def __init__(
        self,
        endpoint: SparqlEndpoint,
        generation: str,
        *,
        exclusive: Exclusive = nullcontext,
        check_processes: int = 1,
    ) -> None:
        self._client, self._space = SparqlClient(endpoint), Space(generation)
        self._reader = FactReader(self._client, self._space)
        self._writer = GroupWriter(self._client, exclusive)
        self._pool = SparqlPool(check_processes)

    async def stage(self, document: str, facts_version: str, facts: Sequence[Fact]) -> None:
        """See Graph.stage. What is staged at once goes in few requests."""
        for fact in facts:
            if (fact.document, fact.facts_version) != (document, facts_version):
                raise ValueError(f"{fact.iri} is a fact of another document or version than {document}")
        pages = [facts[start : start + FACTS_PER_UPDATE] for start in range(0, len(facts), FACTS_PER_UPDATE)]
        updates = await asyncio.to_thread(lambda: [self._space.insertion(page) for page in pages])
        await self._writer.write(updates)

    async def collect(self, live: dict[str, str], revision: int) -> None:
        """See Graph.collect."""
        await self._writer.write([self._space.removal(document, version) for document, version in live.items()])

    async def revision(self) -> int | None:
        """Return None: the server keeps what it accepted on its own terms."""
        return None

    async def facts_about(self, nodes: Sequence[Node], access_classes: Sequence[str] | None, limit: int) -> list[Fact]:
        """See Graph.facts_about."""
        return await self._reader.facts_about(nodes, access_classes, limit)

    async def facts_of(self, documents: Sequence[str]) -> list[Fact]:
        """See Graph.facts_of."""
        return await self._reader.facts_of(documents)

    async def missing(self, versions: Mapping[str, str]) -> set[str]:
        """See Graph.missing."""
        return await self._reader.missing(versions)

    async def held(self, documents: Sequence[str]) -> set[str]:
        """See Graph.held."""
        return await self._reader.held(documents)

    async def find_entities(
        self, text: str, access_classes: Sequence[str] | None, limit: int
    ) -> list[tuple[Node, str]]:
        """See Graph.find_entities. Looks at the shortest 5,000 names that may match."""
        return await self._reader.find_entities(text, access_classes, limit)

    async def names(self, limit: int) -> list[tuple[str, str]]:
        """See Graph.names."""
        return await self._reader.names(limit)

    async def naming(
        self, names: Sequence[tuple[str, str]], access_classes: Sequence[str] | None, each: int
    ) -> list[Fact]:
        """See Graph.naming."""
        return await self._reader.naming(names, access_classes, each)

    async def scan(self) -> AsyncIterator[Fact]:
        """See Graph.scan. A fact whose node was damaged or changed by hand is left out."""
        keys = await self._reader.fact_keys()
        for start in range(0, len(keys), PAGE):
            for fact in await self._reader.whole_facts(keys[start : start + PAGE]):
                yield fact

    async def triples(self) -> list[tuple[str, str, str, str]]:
        """See Graph.triples."""
        return await self._reader.triples()

    async def query(
        self,
        sparql: str,
        access_classes: Sequence[str] | None,
        *,
        timeout_s: float,
        accept: str,
        max_bytes: int,
    ) -> bytes:
        """See Graph.query. Checked in a child process, then run by the server.

        A triple that several permitted classes hold may appear once per class: use DISTINCT.
        """
        await self._pool.check(sparql, timeout_s)
        if access_classes is None:
            graphs = await self._reader.class_graphs()
        else:
            graphs = [self._space.graph(name).value for name in dict.fromkeys(access_classes)]
        limit = JSON_OVER_RESULT * max_bytes + (1 << 16)
        answer = await self._client.ask(
            self._space.asked(sparql), graphs or [NOTHING], timeout_s=timeout_s, max_bytes=limit
        )
        result = self._space.answered(await asyncio.to_thread(_serialized, answer, accept))
        if len(result) > max_bytes:
            raise InvalidQuery("the result is over the size limit; add LIMIT or ask for fewer columns")
        return result

    async def drop(self) -> None:
        """See Graph.drop."""
        await self._writer.write([self._space.drop(await self._reader.class_graphs())])
        await self.close()

    async def close(self) -> None:
        """See Graph.close."""
        await self._pool.close()
        await self._client.close()


def _serialized(answer: Answer, accept: str) -> bytes:
    """Return the server's result in the asked format; the same library writes it as embedded."""
    if answer.media_type == TRIPLES:
        triples = TRIPLE_FORMATS.get(accept)
        if triples is None:
            raise InvalidQuery(_wrong_format("CONSTRUCT and DESCRIBE give triples", list(TRIPLE_FORMATS), accept))
        return ox.serialize(ox.parse(answer.body, format=ox.RdfFormat.N_TRIPLES), format=triples) or b""
    solutions = SOLUTION_FORMATS.get(accept)
    if solutions is None:
        raise InvalidQuery(_wrong_format("SELECT and ASK give solutions", list(SOLUTION_FORMATS), accept))
    if accept == RESULTS:
        return answer.body
    return ox.parse_query_results(answer.body, format=ox.QueryResultsFormat.JSON).serialize(format=solutions) or b""


def _wrong_format(why: str, formats: list[str], accept: str) -> str:
    return f"{why}: ask for one of {', '.join(formats)}, not {accept or 'nothing'}"
