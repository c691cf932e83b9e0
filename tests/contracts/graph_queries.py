"""SPARQL that a person or a model wrote."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from pipeline.errors import InvalidQuery, QueryTimeout
from pipeline.ports.graph import Graph
from pipeline.steps.iris import node_iri
from tests.contracts.graph_fixtures import F17, FORKLIFT, GraphFixtures, entity, fact, put, text

JSON, CSV, TSV = "application/sparql-results+json", "text/csv", "text/tab-separated-values"
XML, TURTLE, N_TRIPLES = "application/sparql-results+xml", "text/turtle", "application/n-triples"
V = "PREFIX v: <urn:shinsen:v:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "

REFUSED = [
    "INSERT DATA { <a:a> <b:b> <c:c> }",
    "DELETE WHERE { ?s ?p ?o }",
    "DROP ALL",
    "CLEAR ALL",
    "LOAD <http://127.0.0.1:1/x>",
    "SELECT * { ?s ?p ?o } ; DROP ALL",
    "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
    "SELECT * { SERVICE SILENT <http://127.0.0.1:1/> { ?s ?p ?o } }",
    "SELECT * { ?s ?p ?o FILTER EXISTS { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } } }",
    "PREFIX x: <http://127.0.0.1:1/> SELECT * { SERVICEx:y { ?s ?p ?o } }",
    "PREFIX : <http://127.0.0.1:1/> SELECT * { SERVICE:y { ?s ?p ?o } }",
    "SELECT * { SERV\\u0049CE <http://127.0.0.1:1/> { ?s ?p ?o } }",
    "SELECT * { { SELECT * { SeRvIcE <http://127.0.0.1:1/> { ?s ?p ?o } } } }",
    "SELECT * FROM <urn:shinsen:class:hidden> { ?s ?p ?o }",
    "SELECT * FROM NAMED <urn:shinsen:class:hidden> { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * FROM <file:///etc/passwd> { ?s ?p ?o }",
    "ASK FROM<urn:shinsen:meta> { ?s ?p ?o }",
    "SELECT * { ?s ?p ",
    "SELECT * { ?s ?p ?o } }",
    "SELECT * { ?s unknown:p ?o }",
    "",
    "F-17の事故原因は何か。",
    "SELECT * { " + "{" * 2_000 + "?s ?p ?o" + "}" * 2_000 + " }",
    "SELECT * { ?s ?p ?o FILTER(" + "(" * 2_000 + "1" + ")" * 2_000 + ") }",
    "SELECT * { ?s ?p '" + "x" * 30_000 + "' }",
]

ENDLESS = V + "SELECT (COUNT(*) AS ?n) { " + " ".join(f"?s{i} ?p{i} ?o{i} ." for i in range(8)) + " }"


async def rows(graph: Graph, query: str, classes: Sequence[str] | None) -> list[dict[str, str]]:
    result = await graph.query(V + query, classes, timeout_s=20, accept=JSON, max_bytes=1_000_000)
    bindings: list[dict[str, Any]] = json.loads(result)["results"]["bindings"]
    return [{name: value["value"] for name, value in row.items()} for row in bindings]


async def run(graph: Graph, query: str, accept: str, max_bytes: int = 1_000_000) -> str:
    return (await graph.query(V + query, None, timeout_s=20, accept=accept, max_bytes=max_bytes)).decode()


class GraphQueries(GraphFixtures):
    async def test_select_over_two_hops(self, graph: Graph) -> None:
        await put(
            graph,
            fact(F17, "is_a", FORKLIFT),
            fact(F17, "label", text("F-17")),
            fact(FORKLIFT, "label", text("フォークリフト")),
        )
        query = "SELECT DISTINCT ?a ?b { ?x rdfs:label ?a ; v:is_a/rdfs:label ?b }"
        assert await rows(graph, query, None) == [{"a": "F-17", "b": "フォークリフト"}]
        assert await rows(graph, query, ["class-a"]) == [{"a": "F-17", "b": "フォークリフト"}]

    async def test_a_query_sees_what_was_written_before_it(self, graph: Graph) -> None:
        for n in range(5):
            await put(graph, fact(F17, "label", text(f"名{n}"), version=str(n)))
            await graph.collect({"cmms/w/1": str(n)}, n)
            assert await rows(graph, "SELECT DISTINCT ?l { ?x rdfs:label ?l }", None) == [{"l": f"名{n}"}]

    async def test_provenance_can_be_asked_for(self, graph: Graph) -> None:
        await put(graph, fact(F17, "is_a", FORKLIFT, confidence=0.9, span=(3, 9), chunk_id="c1"))
        query = (
            "SELECT ?d ?c ?k ?s ?e ?m { ?f v:document ?d ; v:confidence ?c ; v:chunk ?k ;"
            " v:spanStart ?s ; v:spanEnd ?e ; v:method ?m }"
        )
        assert await rows(graph, query, None) == [
            {"d": "urn:shinsen:document:cmms/w/1", "c": "0.9", "k": "c1", "s": "3", "e": "9", "m": "column"}
        ]

    async def test_every_form_in_its_formats(self, graph: Graph) -> None:
        await put(graph, fact(F17, "label", text("F-17")))
        select = "SELECT DISTINCT ?l { ?x rdfs:label ?l }"
        construct = "CONSTRUCT { ?x rdfs:label ?l } WHERE { ?x rdfs:label ?l }"
        assert (await run(graph, select, CSV)).split() == ["l", "F-17"]
        assert (await run(graph, select, TSV)).split() == ["?l", '"F-17"']
        assert "<literal>F-17</literal>" in await run(graph, select, XML)
        assert json.loads(await run(graph, "ASK { ?x rdfs:label 'F-17' }", JSON))["boolean"] is True
        assert json.loads(await run(graph, "ASK { ?x rdfs:label 'F-18' }", JSON))["boolean"] is False
        line = '<http://www.w3.org/2000/01/rdf-schema#label> "F-17" .'
        assert (await run(graph, construct, N_TRIPLES)).strip().endswith(line)
        assert '"F-17"' in await run(graph, construct, TURTLE)
        assert '"F-17"' in await run(graph, "DESCRIBE ?x { ?x rdfs:label ?l }", TURTLE)

    async def test_only_permitted_classes_by_any_way(self, graph: Graph) -> None:
        await put(graph, fact(F17, "label", text("open"), access_class="shown"))
        await put(graph, fact(entity("s-1"), "label", text("secret"), access_class="hidden"))
        await graph.collect({}, 9)
        for query in (
            "SELECT DISTINCT ?l { ?x rdfs:label ?l }",
            "SELECT DISTINCT ?l { GRAPH ?g { ?x rdfs:label ?l } }",
            "SELECT DISTINCT ?l { { ?x rdfs:label ?l } UNION{ GRAPH <urn:shinsen:class:hidden> { ?x rdfs:label ?l }} }",
            "SELECT DISTINCT ?l { { SELECT * { GRAPH ?g { ?x rdfs:label ?l } } } }",
        ):
            assert await rows(graph, query, ["shown", "unknown"]) == [{"l": "open"}], query
            assert len(await rows(graph, query, None)) == 2
            assert await rows(graph, query, []) == []
        described = await graph.query(
            f"DESCRIBE <{node_iri(entity('s-1'))}>",
            ["shown"],
            timeout_s=20,
            accept=N_TRIPLES,
            max_bytes=10_000,
        )
        assert b"secret" not in described

    async def test_the_graph_of_revisions_is_no_class(self, graph: Graph) -> None:
        await put(graph, fact(F17, "label", text("F-17")))
        await graph.collect({}, 77)
        for query in ("SELECT * { ?s v:revision ?o }", "SELECT * { GRAPH <urn:shinsen:meta> { ?s ?p ?o } }"):
            assert await rows(graph, query, None) == []
        assert await rows(graph, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }", None) == [
            {"g": "urn:shinsen:class:class-a"}
        ]

    async def test_what_is_no_query_or_more_than_one_is_refused(self, graph: Graph) -> None:
        await put(graph, fact(F17, "label", text("F-17")))
        for query in REFUSED:
            with pytest.raises(InvalidQuery) as refusal:
                await graph.query(query, None, timeout_s=20, accept=JSON, max_bytes=1_000_000)
                pytest.fail(f"not refused: {query[:200]}")
            assert refusal.value.reason, query
        assert len(await graph.triples()) == 1

    async def test_words_in_texts_names_and_comments_are_allowed(self, graph: Graph) -> None:
        await put(graph, fact(F17, "service", text('FROM "SERVICE" <x> # {')))
        query = (
            "SELECT DISTINCT ?from { ?service v:service ?from . # SERVICE <http://x> {}\n"
            " FILTER(?from != 'DROP ALL; { SERVICE' && 1 < 2 && 3 > 2) }"
        )
        assert await rows(graph, query, None) == [{"from": 'FROM "SERVICE" <x> # {'}]

    async def test_a_result_over_the_limit(self, graph: Graph) -> None:
        await put(graph, *(fact(entity(f"e{n}"), "label", text("名" * 50)) for n in range(50)))
        query = "SELECT * { ?x rdfs:label ?l }"
        size = len((await run(graph, query, CSV)).encode())
        assert len((await run(graph, query, CSV, size)).encode()) == size
        with pytest.raises(InvalidQuery, match="limit"):
            await run(graph, query, CSV, size - 1)

    async def test_a_query_that_runs_too_long_is_stopped(self, graph: Graph) -> None:
        await put(graph, *(fact(entity(f"e{n}"), "label", text(f"名{n}")) for n in range(30)))
        assert len(await rows(graph, "SELECT DISTINCT ?x { ?x rdfs:label ?l }", None)) == 30
        start = time.monotonic()
        with pytest.raises(QueryTimeout):
            await graph.query(ENDLESS, None, timeout_s=0.5, accept=JSON, max_bytes=1_000)
        assert time.monotonic() - start < 5
        assert len(await rows(graph, "SELECT DISTINCT ?x { ?x rdfs:label ?l }", None)) == 30

    async def test_queries_while_others_write(self, graph: Graph) -> None:
        async def write() -> None:
            for n in range(10):
                await put(graph, fact(F17, "label", text("F-17"), version=str(n)))
                await graph.collect({"cmms/w/1": str(n)}, n)

        async def ask() -> None:
            for _ in range(10):
                found = await rows(graph, "SELECT DISTINCT ?l { ?x rdfs:label ?l }", ["class-a"])
                assert found in ([], [{"l": "F-17"}])

        await asyncio.gather(write(), ask(), ask(), ask())
