"""Staging and collecting facts."""

import asyncio
import json

import pytest

from pipeline.ports.graph import Graph
from schemas.knowledge import DocumentRef, EntityRef, LiteralValue
from tests.contracts.graph_fixtures import (
    F17,
    FORKLIFT,
    GraphFixtures,
    OpenGraph,
    by_iri,
    entity,
    fact,
    put,
    scanned,
    text,
)

JSON = "application/sparql-results+json"
HARD_TEXTS = [
    '"> ; DROP ALL #',
    '" } } ; CLEAR ALL ; INSERT DATA { <a:a> <b:b> "',
    "'''\"\"\"\\",
    "line\nbreak\r\ttab",
    "\\u0022 \\n",
    "𠮟る 😀 e\u0301 \u3000 \u200b",
    "<iri> _:blank ?var $var @ja ^^",
    " lead and trail ",
    "",
    "\u0001\u007f",
]


DECIMALS = ["2", "2.0", "1.50", "0", "-0", "-3", "100", "123456789012345678901234567890", "0.000000000000000000001"]
OFTEN = "2025-07-08T09:00:00.123456Z"


def facts_of_all_kinds() -> list:  # type: ignore[type-arg]
    return [
        fact(F17, "is_a", FORKLIFT, span=(3, 9), chunk_id="c1", method="pattern", confidence=1 / 3),
        fact(DocumentRef("cmms/w/1"), "mentions", F17, confidence=1.0),
        fact(DocumentRef("cmms/w/1"), "type", LiteralValue("WorkOrder", "class")),
        fact(DocumentRef("cmms/w/1"), "refers_to", DocumentRef("dms/文書/a b/<c>")),
        fact(F17, "same_as", EntityRef("concept", "f-17号車", "F-17号車")),
        fact(F17, "label", text("F-17"), observed_at="2025-07-08T09:00:00.120000Z"),
        fact(F17, "weight", LiteralValue("1.50", "decimal"), access_class="class-b"),
        fact(F17, "count", LiteralValue("007", "integer")),
        fact(F17, "ratio", LiteralValue("1.0E0", "double")),
        fact(F17, "made", LiteralValue("2025-07-08", "date")),
        fact(F17, "seen", LiteralValue("2025-07-08T00:00:00.000000Z", "dateTime")),
        fact(F17, "active", LiteralValue("1", "boolean")),
        fact(F17, "odd", LiteralValue("not a number", "integer")),
    ]


class GraphWrites(GraphFixtures):
    async def test_facts_come_back_as_they_were_staged(self, graph: Graph) -> None:
        facts = facts_of_all_kinds()
        await put(graph, *facts)
        assert await graph.facts_of(["cmms/w/1"]) == by_iri(*facts)
        assert await scanned(graph) == by_iri(*facts)

    @pytest.mark.parametrize("hard", HARD_TEXTS)
    async def test_no_text_is_ever_syntax(self, graph: Graph, hard: str) -> None:
        stays = fact(F17, "is_a", FORKLIFT, document="other")
        odd = EntityRef(f"f{hard}", hard, hard)
        facts = [
            fact(odd, "label", text(hard), document=f"s/c/{hard}", version=f"v{hard}", chunk_id=hard),
            fact(
                DocumentRef(hard), f"p{hard}", LiteralValue(hard, "class"), document=f"s/c/{hard}", version=f"v{hard}"
            ),
        ]
        await put(graph, stays, *facts)
        assert await scanned(graph) == by_iri(stays, *facts)
        assert await graph.facts_about([odd], None, 9) == facts[:1]
        assert len(await graph.triples()) == 3
        await graph.collect({f"s/c/{hard}": f"v{hard}", hard: hard}, 1)
        assert await scanned(graph) == by_iri(stays, *facts)
        await graph.collect({f"s/c/{hard}": ""}, 2)
        assert await scanned(graph) == [stays]

    async def test_plain_triples_are_canonical(self, graph: Graph) -> None:
        await put(graph, *facts_of_all_kinds())
        xsd = "^^<http://www.w3.org/2001/XMLSchema#"
        values = {row[2].rsplit(":", 1)[1].rstrip(">"): (row[0], row[3]) for row in await graph.triples()}
        assert values["weight"] == ("class-b", f'"1.5"{xsd}decimal>')
        assert values["count"] == ("class-a", f'"7"{xsd}integer>')
        assert values["ratio"] == ("class-a", f'"1"{xsd}double>')
        assert values["made"] == ("class-a", f'"2025-07-08"{xsd}date>')
        assert values["seen"] == ("class-a", f'"2025-07-08T00:00:00Z"{xsd}dateTime>')
        assert values["active"] == ("class-a", f'"true"{xsd}boolean>')
        assert values["odd"] == ("class-a", '"not a number"')

    async def test_triples_are_ordered_and_whole(self, graph: Graph) -> None:
        await put(graph, *facts_of_all_kinds())
        rows = await graph.triples()
        assert rows == sorted(rows)
        assert len(rows) == 13
        assert (
            "class-a",
            "<urn:shinsen:document:cmms/w/1>",
            "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
            "<urn:shinsen:v:WorkOrder>",
        ) in rows

    async def test_an_empty_graph(self, graph: Graph) -> None:
        assert await scanned(graph) == []
        assert await graph.triples() == []
        assert await graph.facts_of(["cmms/w/1"]) == []
        await graph.stage("cmms/w/1", "v1", [])
        await graph.collect({"cmms/w/1": "v1"}, 1)
        assert await scanned(graph) == []

    async def test_staging_again_changes_nothing(self, graph: Graph) -> None:
        facts = facts_of_all_kinds()
        await put(graph, *facts)
        before = await graph.triples()
        await put(graph, *facts)
        assert await scanned(graph) == by_iri(*facts)
        assert await graph.triples() == before

    async def test_a_version_is_staged_beside_the_live_one_and_collect_keeps_one(self, graph: Graph) -> None:
        old, both = fact(F17, "label", text("古い")), fact(F17, "is_a", FORKLIFT)
        new = [fact(F17, "label", text("新しい"), version="v2"), fact(F17, "is_a", FORKLIFT, version="v2")]
        await put(graph, old, both)
        await put(graph, *new)
        assert await scanned(graph) == by_iri(old, both, *new)
        await graph.collect({"cmms/w/1": "v2"}, 1)
        assert await scanned(graph) == by_iri(*new)
        assert sorted(row[3] for row in await graph.triples()) == sorted(['"新しい"', (await graph.triples())[1][3]])
        assert len(await graph.triples()) == 2

    @pytest.mark.parametrize("live", ["v3", ""])
    async def test_triples_of_several_dead_versions_go(self, graph: Graph, live: str) -> None:
        """Left by writers that were killed between staging and collecting."""
        for version in ("v1", "v2"):
            await put(graph, *(fact(F17, name, FORKLIFT, version=version) for name in ("is_a", version)))
        kept = fact(F17, "seen_with", FORKLIFT, version="v3")
        await put(graph, kept)
        await graph.collect({"cmms/w/1": live}, 1)
        assert await scanned(graph) == ([kept] if live else [])
        assert len(await graph.triples()) == len(live) // 2

    async def test_nothing_of_a_fact_outlives_it_whatever_its_values(self, graph: Graph) -> None:
        """Stores have forms of their own for numbers and times, and must find them again to remove them."""
        decimals = [LiteralValue(value, "decimal") for value in DECIMALS]
        values = [*decimals, *(one.object for one in facts_of_all_kinds()), LiteralValue("1E3", "double")]
        values += [LiteralValue(f"2025-07-08T09:00:00{part}", "dateTime") for part in ("Z", ".120Z", ".1234567Z")]
        sure, unsure = ([fact(F17, "p", v, confidence=c, observed_at=OFTEN) for v in values] for c in (1.0, 1 / 3))
        for facts in (sure, unsure):
            await put(graph, *facts)
            await graph.collect({"cmms/w/1": ""}, 1)
            assert await graph.triples() == []
            left = await graph.query("SELECT * { ?s ?p ?o }", None, timeout_s=20, accept=JSON, max_bytes=10_000)
            assert json.loads(left)["results"]["bindings"] == []

    async def test_staging_without_facts_leaves_the_live_ones(self, graph: Graph) -> None:
        kept = fact(F17, "is_a", FORKLIFT)
        await put(graph, kept)
        await graph.stage("cmms/w/1", "v2", [])
        assert await scanned(graph) == [kept]
        await graph.collect({"cmms/w/1": "v2"}, 1)
        assert await scanned(graph) == [] == await graph.triples()

    async def test_a_triple_stays_while_another_document_supports_it(self, graph: Graph) -> None:
        one, two = fact(F17, "is_a", FORKLIFT, document="s/c/1"), fact(F17, "is_a", FORKLIFT, document="s/c/2")
        await put(graph, one, two)
        assert len(await graph.triples()) == 1
        await graph.collect({"s/c/1": ""}, 1)
        assert (await scanned(graph), len(await graph.triples())) == ([two], 1)
        await graph.collect({"s/c/2": ""}, 2)
        assert (await scanned(graph), await graph.triples()) == ([], [])

    async def test_two_documents_go_in_one_collect(self, graph: Graph) -> None:
        await put(graph, *(fact(F17, "is_a", FORKLIFT, document=f"s/c/{n}") for n in range(3)))
        await graph.collect({"s/c/0": "", "s/c/1": ""}, 1)
        assert len(await graph.triples()) == 1
        await graph.collect({"s/c/0": "", "s/c/1": "", "s/c/2": ""}, 2)
        assert await graph.triples() == []

    async def test_support_counts_per_class(self, graph: Graph) -> None:
        a = fact(F17, "is_a", FORKLIFT, document="s/c/1", access_class="class-a")
        b = fact(F17, "is_a", FORKLIFT, document="s/c/2", access_class="class-b")
        await put(graph, a, b)
        assert [row[0] for row in await graph.triples()] == ["class-a", "class-b"]
        await graph.collect({"s/c/1": ""}, 1)
        assert [row[0] for row in await graph.triples()] == ["class-b"]

    async def test_narrowing_the_class_moves_the_triple(self, graph: Graph) -> None:
        await put(graph, fact(F17, "is_a", FORKLIFT, version="v1", access_class="everyone"))
        await put(graph, narrow := fact(F17, "is_a", FORKLIFT, version="v2", access_class="few"))
        await graph.collect({"cmms/w/1": "v2"}, 1)
        assert [row[0] for row in await graph.triples()] == ["few"]
        assert await graph.facts_about([F17], ["everyone"], 9) == []
        assert await graph.facts_about([F17], ["few"], 9) == [narrow]

    async def test_collect_is_exact_on_the_document_key(self, graph: Graph) -> None:
        keys = ["s/c/1-1", "s/c/1-12", "s/c/1", "s/c/１-1", "s/c/1-1/x", "s/c/%31-1"]
        await put(graph, *(fact(entity(f"e{n}"), "is_a", FORKLIFT, document=key) for n, key in enumerate(keys)))
        await graph.collect({"s/c/1-1": ""}, 1)
        assert sorted(one.document for one in await scanned(graph)) == sorted(keys[1:])
        assert len(await graph.triples()) == 5

    async def test_collect_again_and_of_unknown_documents(self, graph: Graph) -> None:
        kept = fact(F17, "is_a", FORKLIFT)
        await put(graph, kept)
        for revision in (1, 2):
            await graph.collect({"cmms/w/1": "v1", "no/such/one": "", "nor/this/one": "v7"}, revision)
        assert await scanned(graph) == [kept]

    async def test_a_document_of_thousands_of_facts(self, graph: Graph) -> None:
        many = [fact(entity(f"e{n}"), "is_a", FORKLIFT) for n in range(2_500)]
        other = fact(entity("e7"), "is_a", FORKLIFT, document="s/c/2")
        await put(graph, *many, other)
        assert await scanned(graph) == by_iri(*many, other)
        await graph.collect({"cmms/w/1": ""}, 3)
        assert await scanned(graph) == [other]
        assert len(await graph.triples()) == 1

    async def test_the_revision_outlives_reopening(self, open_graph: OpenGraph) -> None:
        graph = await open_graph()
        kept = fact(F17, "is_a", FORKLIFT)
        await put(graph, kept)
        await graph.collect({"cmms/w/1": "v1"}, 41)
        await graph.collect({}, 42)
        assert await graph.revision() in (42, None)
        await graph.close()
        graph = await open_graph()
        assert await graph.revision() in (42, None)
        assert await scanned(graph) == [kept]
        await graph.close()

    async def test_two_writers_at_once_leave_no_orphans(self, graph: Graph) -> None:
        for n in range(100):
            one, two = (fact(F17, "is_a", FORKLIFT, document=f"s/c/{i}", version=str(n)) for i in (1, 2))
            await asyncio.gather(put(graph, one), put(graph, two))
            await asyncio.gather(graph.collect({"s/c/1": ""}, n), graph.collect({"s/c/2": ""}, n))
            assert await graph.triples() == [], f"round {n}"

    async def test_writers_that_come_and_go_keep_what_is_supported(self, graph: Graph) -> None:
        async def renew(document: str) -> None:
            for n in range(8):
                await put(graph, fact(F17, "is_a", FORKLIFT, document=document, version=str(n)))
                await graph.collect({document: str(n)}, n)

        await asyncio.gather(*(renew(f"s/c/{i}") for i in range(6)))
        assert [one.facts_version for one in await scanned(graph)] == ["7"] * 6
        assert len(await graph.triples()) == 1

    async def test_close_twice(self, open_graph: OpenGraph) -> None:
        graph = await open_graph()
        await graph.close()
        await graph.close()

    async def test_drop_leaves_nothing(self, open_graph: OpenGraph) -> None:
        graph = await open_graph()
        await put(graph, fact(F17, "is_a", FORKLIFT))
        await graph.collect({}, 5)
        await graph.drop()
        graph = await open_graph()
        assert (await scanned(graph), await graph.triples()) == ([], [])
        assert await graph.revision() in (0, None)
        await graph.drop()
