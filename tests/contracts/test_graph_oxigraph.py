"""The pyoxigraph graph: the contract, and what is its own."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from pipeline.backends import graph_oxigraph_store
from pipeline.backends.graph_oxigraph import OxigraphGraph
from pipeline.backends.graph_oxigraph_store import FactStore
from pipeline.errors import BackendUnavailable, InvalidQuery
from pipeline.ports.graph import Graph
from tests.contracts.graph import GraphContract
from tests.contracts.graph_fixtures import F17, FORKLIFT, OpenGraph, by_iri, entity, fact, put, scanned, text
from tests.contracts.graph_queries import CSV, ENDLESS, JSON, TURTLE


class TestOxigraphGraph(GraphContract):
    @pytest.fixture
    async def open_graph(self, tmp_path: Path) -> OpenGraph:
        async def open_it() -> Graph:
            return OxigraphGraph(tmp_path, "g1")

        return open_it


def store_of(graph: OxigraphGraph) -> ox.Store:
    return graph._store._store


async def test_any_lost_quad_of_a_fact_shows_in_the_scan_or_the_triples(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    await put(graph, fact(F17, "weight", text("1.50"), span=(1, 2), chunk_id="c"), fact(F17, "is_a", FORKLIFT))
    before = (await scanned(graph), await graph.triples())
    quads = list(store_of(graph))
    assert len(quads) == 2 + 14 + 11
    for quad in quads:
        store_of(graph).remove(quad)
        assert (await scanned(graph), await graph.triples()) != before, quad
        store_of(graph).add(quad)
    assert (await scanned(graph), await graph.triples()) == before
    await graph.close()


async def test_a_fact_that_is_removed_while_it_is_looked_at_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read has a view of its own: between two of them another thread may have changed what stands."""
    graph = OxigraphGraph(tmp_path, "g1")
    one = fact(F17, "weight", text("1.50"))
    await put(graph, one)
    value = FactStore._value

    def later(self: FactStore, *given: Any) -> Any:
        self._store.clear()
        return value(self, *given)

    monkeypatch.setattr(FactStore, "_value", later)
    assert await graph.missing({one.document: one.facts_version}) == {one.document}
    await graph.close()


async def test_two_openers_are_refused(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    with pytest.raises(BackendUnavailable, match="another process"):
        OxigraphGraph(tmp_path, "g1")
    await graph.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await graph.revision()


async def test_names_are_the_same_when_read_from_the_store(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    await put(graph, fact(F17, "label", text("F-17")), fact(F17, "alias", text("17号車")))
    await graph.close()
    graph = OxigraphGraph(tmp_path, "g1")
    assert [name for _, name in await graph.find_entities("17", None, 9)] == ["17号車", "F-17"]
    await graph.close()


async def test_a_hub_is_bounded_and_its_hidden_facts_hide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_oxigraph_store, "HUB_FACTS", 200)
    monkeypatch.setattr(graph_oxigraph_store, "FACTS_PER_UPDATE", 70)
    graph = OxigraphGraph(tmp_path, "g1")
    hidden = [fact(entity(f"h{n}"), "is_a", FORKLIFT, access_class="hidden") for n in range(250)]
    shown = [fact(entity(f"s{n}"), "is_a", FORKLIFT, access_class="shown", document="s/c/2") for n in range(20)]
    await put(graph, *hidden, *shown)
    assert await graph.facts_about([FORKLIFT], ["shown"], 50) == by_iri(*shown)
    assert len(await graph.facts_about([FORKLIFT], None, 50)) == 50
    await graph.collect({"cmms/w/1": ""}, 8)
    assert (await scanned(graph), await graph.revision()) == (by_iri(*shown), 8)
    await graph.close()


async def test_names_read_while_others_write_miss_nothing(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")

    async def write(n: int) -> None:
        await put(graph, fact(entity(f"e{n}"), "label", text(f"名{n}"), document=f"s/c/{n}"))

    await asyncio.gather(*map(write, range(100)), graph.find_entities("名", None, 1))
    assert len(await graph.find_entities("名", None, 200)) == 100
    await graph.close()


async def test_closing_ends_a_running_query(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    await put(graph, *(fact(entity(f"e{n}"), "label", text(f"名{n}")) for n in range(30)))
    await ask(graph, "ASK {}")
    task = asyncio.create_task(ask(graph, ENDLESS))
    await asyncio.sleep(0.2)
    await graph.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await task


async def test_results_in_the_wrong_format_say_which_are_right(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    for query, accept in (("SELECT * { ?s ?p ?o }", TURTLE), ("CONSTRUCT WHERE { ?s ?p ?o }", CSV), ("ASK {}", "")):
        with pytest.raises(InvalidQuery, match="ask for one of"):
            await graph.query(query, None, timeout_s=20, accept=accept, max_bytes=1_000)
    await graph.close()


async def ask(graph: OxigraphGraph, query: str, seconds: float = 20) -> bytes:
    return await graph.query(query, None, timeout_s=seconds, accept=JSON, max_bytes=10_000)


def processes(graph: OxigraphGraph) -> list[int]:
    return [process.pid for process in graph._pool._all]


def runs(pid: int) -> bool:
    try:
        return b"sparql_child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


async def test_children_are_kept_warm_and_replaced_when_they_die(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    await ask(graph, "ASK {}")
    (first,) = processes(graph)
    await ask(graph, "ASK {}")
    assert processes(graph) == [first]
    os.kill(first, signal.SIGKILL)
    await asyncio.sleep(0.3)
    assert json.loads(await ask(graph, "ASK {}"))["boolean"] is True
    (second,) = processes(graph)
    assert second != first
    await graph.close()
    assert not runs(second)


async def test_a_cancelled_query_does_not_go_on(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    await put(graph, *(fact(entity(f"e{n}"), "label", text(f"名{n}")) for n in range(30)))
    await ask(graph, "ASK {}")
    (pid,) = processes(graph)
    task = asyncio.create_task(ask(graph, ENDLESS))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not runs(pid)
    await graph.close()


async def test_checkpoints_are_removed_when_unused(tmp_path: Path) -> None:
    graph = OxigraphGraph(tmp_path, "g1")
    for n in range(4):
        await put(graph, fact(F17, "label", text("F-17"), version=str(n)))
        await ask(graph, "ASK { ?s ?p ?o }")
        await ask(graph, "ASK { ?s ?p ?o }")
        assert len(list((tmp_path / "graph-g1" / "checkpoints").iterdir())) == 1
    await graph.close()
    assert not (tmp_path / "graph-g1" / "checkpoints").exists()
