"""The graph on real SPARQL servers: the contract on both, and what is the backend's own."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ops.stack import servers
from ops.stack.errors import StackError
from ops.stack.oxigraph import QUERY_TIMEOUT_S
from pipeline.backends.graph_sparql import SparqlGraph
from pipeline.backends.graph_sparql_client import CANCELLED, SparqlEndpoint
from pipeline.backends.graph_terms import fact_quads
from pipeline.errors import BackendUnavailable, InvalidConfiguration, InvalidQuery, QueryTimeout
from pipeline.ports.graph import Graph
from schemas.knowledge import Fact
from tests.contracts.graph import GraphContract
from tests.contracts.graph_fixtures import F17, FORKLIFT, OpenGraph, entity, fact, put, scanned, text
from tests.contracts.graph_queries import CSV, ENDLESS, JSON, TURTLE

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module", params=["fuseki", "oxigraph"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server of this module's own: some of these tests leave it at work, or kill it."""
    folder = tmp_path_factory.mktemp("sparql")
    try:
        servers.start([request.param], folder)
    except StackError as error:
        pytest.skip(f"no {request.param} here ({error.what}); next: {error.todo}")
    yield request.param, folder
    servers.purge(folder)


@pytest.fixture
def endpoint(server: tuple[str, Path]) -> SparqlEndpoint:
    at = servers.endpoint(*server)
    return SparqlEndpoint(at.urls["query"], at.urls["update"])


@pytest.fixture
def restarted_afterwards(server: tuple[str, Path]) -> Iterator[None]:
    """Oxigraph's time-out does not end every query (see below): the process must."""
    yield
    name, folder = server
    if name == "oxigraph":
        servers.kill(name, folder)
        servers.start([name], folder)


@pytest.fixture
def generation() -> str:
    """A space of its own for each test."""
    return f"t{uuid.uuid4().hex[:12]}"


class TestSparqlGraph(GraphContract):
    @pytest.fixture
    async def open_graph(self, endpoint: SparqlEndpoint, generation: str) -> OpenGraph:
        async def open_it() -> Graph:
            return SparqlGraph(endpoint, generation)

        return open_it

    @pytest.mark.usefixtures("restarted_afterwards")
    async def test_a_query_that_runs_too_long_is_stopped(self, graph: Graph) -> None:
        await super().test_a_query_that_runs_too_long_is_stopped(graph)


@pytest.fixture
async def graph(endpoint: SparqlEndpoint, generation: str) -> AsyncIterator[SparqlGraph]:
    graph = SparqlGraph(endpoint, generation)
    yield graph
    await graph.drop()


async def ask(graph: SparqlGraph, query: str, accept: str = JSON, seconds: float = 20) -> bytes:
    return await graph.query(query, None, timeout_s=seconds, accept=accept, max_bytes=10_000)


async def test_any_lost_quad_of_a_fact_shows_in_the_scan_or_the_triples(graph: SparqlGraph) -> None:
    facts = fact(F17, "weight", text("1.50"), span=(1, 2), chunk_id="c"), fact(F17, "is_a", FORKLIFT)
    await put(graph, *facts)
    before = (await scanned(graph), await graph.triples())
    quads = [quad for one in facts for quad in fact_quads(one)]
    assert len(quads) == 2 + 14 + 11
    for quad in quads:
        inner = graph._space.inner(quad.graph).n3()
        triple = f"{{ GRAPH {inner} {{ {quad.subject.n3()} {quad.predicate.n3()} {quad.object.n3()} }} }}"
        await graph._client.update(f"DELETE DATA {triple}")
        assert (await scanned(graph), await graph.triples()) != before, quad
        await graph._client.update(f"INSERT DATA {triple}")
    assert (await scanned(graph), await graph.triples()) == before


async def test_generations_on_one_server_do_not_meet(endpoint: SparqlEndpoint, graph: SparqlGraph) -> None:
    other = SparqlGraph(endpoint, f"{graph._space.name.value.rpartition(':')[2]}2")
    mine, theirs = fact(F17, "label", text("mine")), fact(F17, "label", text("theirs"))
    await put(graph, mine)
    await put(other, theirs)
    assert (await scanned(graph), await scanned(other)) == ([mine], [theirs])
    assert await graph.facts_about([F17], None, 9) == [mine]
    assert [name for _, name in await graph.find_entities("e", None, 9)] == ["mine"]
    inner = other._space.graph("class-a").n3()
    for query in (f"SELECT * {{ GRAPH {inner} {{ ?s ?p ?o }} }}", "SELECT * { ?s ?p 'theirs' }"):
        assert json.loads(await ask(graph, query))["results"]["bindings"] == []
    await other.drop()
    assert await scanned(graph) == [mine]


@pytest.mark.usefixtures("restarted_afterwards")
async def test_a_stopped_query_does_not_go_on_in_the_server(
    request: pytest.FixtureRequest, server: tuple[str, Path], graph: SparqlGraph
) -> None:
    name, folder = server
    if name == "oxigraph":
        why = "Oxigraph 0.5.13 looks at its time-out while it reads quads, not while it multiplies rows in memory"
        request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=why))
    await put(graph, *(fact(entity(f"e{n}"), "label", text(f"名{n}")) for n in range(30)))
    with pytest.raises(QueryTimeout):
        await ask(graph, ENDLESS, seconds=1)
    end = asyncio.get_running_loop().time() + QUERY_TIMEOUT_S + 5
    while (busy := await processor_share(servers.endpoint(name, folder).pid)) > 0.2:
        assert asyncio.get_running_loop().time() < end, f"{name} still works: {busy:.0%} of a core"


async def processor_share(pid: int) -> float:
    """The share of a core that a process used in one second."""

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    await asyncio.sleep(1)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK")


async def test_results_in_the_wrong_format_say_which_are_right(graph: SparqlGraph) -> None:
    await put(graph, fact(F17, "label", text("F-17")))
    for query, accept in (("SELECT * { ?s ?p ?o }", TURTLE), ("CONSTRUCT WHERE { ?s ?p ?o }", CSV), ("ASK {}", "")):
        with pytest.raises(InvalidQuery, match="ask for one of"):
            await ask(graph, query, accept)


@asynccontextmanager
async def answering(*parts: bytes, pause: float = 0) -> AsyncIterator[SparqlGraph]:
    """A server that answers every request with these bytes, slowly."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    graph = SparqlGraph(SparqlEndpoint(address, address), "g1")
    async with server:
        yield graph
    await graph.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\nConnection: close\r\n\r\n"
CUT = b'{"head":{"vars":["fact","g"]},"results":{"bindings":[{"fact":{"type":"uri","value":"urn:a"},'


@pytest.mark.parametrize("parts", [(OK, CUT), (OK, CUT + CANCELLED), (b"HTTP/1.1 500 Oh\r\n\r\n",), (b"",)])
async def test_what_is_no_whole_answer_is_an_error(parts: tuple[bytes, ...]) -> None:
    async with answering(*parts) as graph:
        with pytest.raises(BackendUnavailable, match="check that it runs"):
            await graph.facts_of(["s/c/1"])
        with pytest.raises((BackendUnavailable, QueryTimeout)):
            await graph.query("ASK {}", ["a"], timeout_s=5, accept=JSON, max_bytes=10_000)


async def test_a_server_that_does_not_answer_in_time() -> None:
    async with answering(OK, pause=3) as graph:
        with pytest.raises(QueryTimeout):
            await graph.query("ASK {}", ["a"], timeout_s=1, accept=JSON, max_bytes=10_000)


async def test_no_server_at_all() -> None:
    graph = SparqlGraph(SparqlEndpoint("http://127.0.0.1:1/q", "http://127.0.0.1:1/u"), "g1")
    for call in (graph.triples(), graph.collect({"s/c/1": ""}, 1), put(graph, fact(F17, "is_a", FORKLIFT))):
        with pytest.raises(BackendUnavailable, match="check that it runs"):
            await call
    await graph.close()
    with pytest.raises(InvalidConfiguration, match="SHINSEN_SPARQL"):
        SparqlGraph(SparqlEndpoint("localhost:3030", ""), "g1")


async def test_writers_hold_what_they_are_told_to_hold(endpoint: SparqlEndpoint) -> None:
    held: list[str] = []

    @asynccontextmanager
    async def exclusive() -> AsyncIterator[None]:
        held.append("in")
        yield
        held.append("out")

    graph = SparqlGraph(endpoint, f"t{uuid.uuid4().hex[:12]}", exclusive=exclusive)
    await asyncio.gather(*(put(graph, fact(entity(f"e{n}"), "is_a", FORKLIFT, document=f"d{n}")) for n in range(4)))
    await graph.collect({"d1": ""}, 1)
    turns = len(held) // 2  # those who write at once share one
    assert held == ["in", "out"] * turns
    assert 2 <= turns <= 5
    await graph.drop()


def counted(graph: SparqlGraph, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The update requests that this graph sends from now on."""
    sent: list[str] = []
    send = graph._client.update

    async def update(text: str) -> None:
        sent.append(text)
        await send(text)

    monkeypatch.setattr(graph._client, "update", update)
    return sent


def named(n: int, version: str = "v1") -> Fact:
    return fact(entity(f"X-{n}"), "is_a", FORKLIFT, document=f"erp/equipment/{n}", version=version)


async def test_documents_at_once_go_in_few_requests(graph: SparqlGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = counted(graph, monkeypatch)
    facts = [named(n) for n in range(100)]
    await asyncio.gather(*(graph.stage(one.document, "v1", [one]) for one in facts))
    assert len(sent) <= 3
    await graph.collect({one.document: "v1" if n % 2 else "" for n, one in enumerate(facts)}, 1)
    assert len(sent) <= 5
    assert {one.document for one in await scanned(graph)} == {one.document for one in facts[1::2]}


async def test_who_shares_a_request_shares_its_failure_and_nobody_else_does(
    graph: SparqlGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, broken = graph._client.update, True

    async def update(text: str) -> None:
        if broken:
            await send("INSERT DATA { no SPARQL }")
        await send(text)

    monkeypatch.setattr(graph._client, "update", update)
    ended = await asyncio.gather(*(graph.stage(f"erp/equipment/{n}", "v1", [named(n)]) for n in range(5)),
                                 return_exceptions=True)  # fmt: skip
    assert all(isinstance(one, BackendUnavailable) for one in ended)
    broken = False
    await graph.stage("erp/equipment/9", "v1", [named(9)])
    assert [one.document for one in await scanned(graph)] == ["erp/equipment/9"]


async def test_a_writer_that_is_cancelled_takes_no_other_with_it(
    graph: SparqlGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, began = graph._client.update, asyncio.Event()

    async def slow(text: str) -> None:
        began.set()
        await asyncio.sleep(0.3)
        await send(text)

    monkeypatch.setattr(graph._client, "update", slow)
    writers = [asyncio.create_task(graph.stage(f"erp/equipment/{n}", "v1", [named(n)])) for n in range(6)]
    await began.wait()
    first = next(n for n, writer in enumerate(writers) if not writer.done())
    for n in {first, 4}:
        writers[n].cancel()
    ended = await asyncio.gather(*writers, return_exceptions=True)
    assert sum(isinstance(one, asyncio.CancelledError) for one in ended) == 2
    there = {one.document for one in await scanned(graph)}
    assert {f"erp/equipment/{n}" for n, one in enumerate(ended) if one is None} <= there


async def test_a_right_that_was_lost_stops_the_writing(endpoint: SparqlEndpoint, generation: str) -> None:
    @asynccontextmanager
    async def lost() -> AsyncIterator[Callable[[], Awaitable[None]]]:
        async def confirm() -> None:
            raise BackendUnavailable("the lock was lost")

        yield confirm

    graph = SparqlGraph(endpoint, generation, exclusive=lost)
    with pytest.raises(BackendUnavailable, match="lost"):
        await graph.stage("erp/equipment/1", "v1", [named(1)])
    assert await scanned(graph) == []
    await graph.close()
