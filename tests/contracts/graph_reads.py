"""Finding facts and entities."""

from pipeline.ports.graph import Graph
from pipeline.steps.iris import node_iri
from schemas.knowledge import DocumentRef, EntityRef
from tests.contracts.graph_fixtures import F17, FORKLIFT, GraphFixtures, by_iri, entity, fact, put, scanned, text


class GraphReads(GraphFixtures):
    async def test_facts_about_a_node_as_subject_or_object(self, graph: Graph) -> None:
        up = fact(F17, "is_a", FORKLIFT)
        manual = fact(DocumentRef("dms/m/1"), "applies_to", FORKLIFT, document="dms/m/1")
        aside = fact(entity("k-08"), "label", text("K-08"))
        await put(graph, up, manual, aside)
        assert await graph.facts_about([FORKLIFT], None, 9) == by_iri(up, manual)
        assert await graph.facts_about([F17], None, 9) == [up]
        assert await graph.facts_about([DocumentRef("dms/m/1")], None, 9) == [manual]
        assert await graph.facts_about([F17, FORKLIFT, F17, entity("k-08")], None, 9) == by_iri(up, manual, aside)
        assert await graph.facts_about([entity("none"), DocumentRef("cmms/w/1")], None, 9) == []
        assert await graph.facts_about([], None, 9) == []

    async def test_the_surface_does_not_tell_entities_apart_but_the_family_does(self, graph: Graph) -> None:
        one = fact(F17, "label", text("F-17"))
        await put(graph, one)
        assert await graph.facts_about([EntityRef("id", "f-17", "ｆ１７")], None, 9) == [one]
        assert await graph.facts_about([EntityRef("concept", "f-17", "F-17")], None, 9) == []

    async def test_a_node_that_points_to_itself(self, graph: Graph) -> None:
        loop = fact(F17, "same_as", F17)
        await put(graph, loop)
        assert await graph.facts_about([F17], None, 9) == [loop]

    async def test_only_facts_of_permitted_classes(self, graph: Graph) -> None:
        facts = {name: fact(F17, "is_a", FORKLIFT, access_class=name) for name in ("a", "b", "c")}
        await put(graph, *facts.values())
        assert await graph.facts_about([F17], ["a", "c", "unknown"], 9) == by_iri(facts["a"], facts["c"])
        assert await graph.facts_about([F17], ["unknown"], 9) == []
        assert await graph.facts_about([F17], [], 9) == []
        assert await graph.facts_about([F17], None, 9) == by_iri(*facts.values())

    async def test_the_limit_takes_the_first_by_iri_of_what_is_permitted(self, graph: Graph) -> None:
        hidden = [fact(entity(f"h{n}"), "is_a", FORKLIFT, access_class="hidden") for n in range(60)]
        shown = [fact(entity(f"s{n}"), "is_a", FORKLIFT, access_class="shown") for n in range(20)]
        await put(graph, *hidden, *shown)
        assert await graph.facts_about([FORKLIFT], ["shown"], 5) == by_iri(*shown)[:5]
        assert await graph.facts_about([FORKLIFT], ["shown"], 50) == by_iri(*shown)
        assert await graph.facts_about([FORKLIFT], None, 70) == by_iri(*hidden, *shown)[:70]
        assert await graph.facts_about([FORKLIFT], None, 0) == []

    async def test_facts_of_documents(self, graph: Graph) -> None:
        mine = [fact(F17, "is_a", FORKLIFT), fact(F17, "label", text("F-17"), version="v2", access_class="b")]
        other = fact(DocumentRef("cmms/w/1"), "label", text("題"), document="cmms/w/12")
        await put(graph, *mine, other)
        assert await graph.facts_of(["cmms/w/1"]) == by_iri(*mine)
        assert await graph.facts_of(["cmms/w/1", "cmms/w/12", "no/such/one", "cmms/w/1"]) == by_iri(*mine, other)
        assert await graph.facts_of([]) == []

    async def test_documents_without_facts_of_a_version_are_told(self, graph: Graph) -> None:
        mine = [
            fact(F17, "is_a", FORKLIFT),
            fact(F17, "label", text("F-17")),
            fact(F17, "label", text("F-17"), version="v2", access_class="b"),
        ]
        await put(graph, *mine, fact(F17, "label", text("題"), document="cmms/w/12", version="v9"))
        every = [f"s/文 書/{n}" for n in range(1_100)]
        there = every[::90]
        await put(graph, *(fact(entity(f"e{n}"), "label", text("名"), document=key) for n, key in enumerate(there)))
        asked = dict.fromkeys(every, "v1") | {"cmms/w/1": "v2", "cmms/w/12": "v9"}
        assert await graph.missing(asked) == set(every) - set(there)
        assert await graph.missing(dict.fromkeys(there, "v2")) == set(there)
        assert await graph.missing({"cmms/w/1": "v9", "cmms/w/12": "v1", "no/such/one": "v1"}) == {
            "cmms/w/1",
            "cmms/w/12",
            "no/such/one",
        }
        assert await graph.missing({}) == set()
        assert await graph.held([*every, "cmms/w/1", "cmms/w/1", "cmms/w"]) == {*there, "cmms/w/1"}
        assert await graph.held([]) == set()
        await graph.collect({"cmms/w/1": "v2", "cmms/w/12": ""}, 1)
        assert await graph.missing({"cmms/w/1": "v1", "cmms/w/12": "v9"}) == {"cmms/w/1", "cmms/w/12"}
        assert await graph.held(["cmms/w/1", "cmms/w/12"]) == {"cmms/w/1"}

    async def test_scan_is_complete_and_ordered(self, graph: Graph) -> None:
        many = [fact(entity(f"e{n}"), "label", text(f"名{n}"), document=f"s/c/{n % 7}") for n in range(1_200)]
        await put(graph, *many)
        assert await scanned(graph) == by_iri(*many)

    async def test_entities_are_found_by_a_part_of_label_or_alias(self, graph: Graph) -> None:
        await put(
            graph,
            fact(F17, "label", text("フォークリフト F-17")),
            fact(F17, "alias", text("f-17号車")),
            fact(entity("k-08"), "label", text("クレーン K-08")),
            fact(entity("n-1"), "note", text("F-17 とは別")),
            fact(DocumentRef("cmms/w/1"), "label", text("F-17 の点検記録について")),
        )
        assert await graph.find_entities("F-17", None, 9) == [
            (EntityRef("id", "f-17", "f-17号車"), "f-17号車"),
            (EntityRef("id", "f-17", "フォークリフト F-17"), "フォークリフト F-17"),
            (DocumentRef("cmms/w/1"), "F-17 の点検記録について"),
        ]
        assert [name for _, name in await graph.find_entities("f-17", None, 1)] == ["f-17号車"]
        assert [name for _, name in await graph.find_entities("ＦＯＯ", None, 9)] == []
        assert [name for _, name in await graph.find_entities("クレーン", None, 9)] == ["クレーン K-08"]

    async def test_names_are_folded_and_never_patterns(self, graph: Graph) -> None:
        names = ["STRASSE", "straße", 'a"b', "c.*d", "e\\f", "ÄÖ"]
        await put(graph, *(fact(entity(f"e{n}"), "label", text(name)) for n, name in enumerate(names)))
        for wanted, expected in [
            ("strasse", ["STRASSE", "straße"]),
            ("äö", ["ÄÖ"]),
            ('A"B', ['a"b']),
            ("c.*d", ["c.*d"]),
            ("c..d", []),
            ("E\\F", ["e\\f"]),
            ('" } DROP', []),
        ]:
            assert sorted(name for _, name in await graph.find_entities(wanted, None, 9)) == sorted(expected), wanted

    async def test_all_names_of_entities(self, graph: Graph) -> None:
        await put(
            graph,
            fact(F17, "label", text("フォークリフト F-17")),
            fact(F17, "alias", text('f"17\\号車')),
            fact(F17, "note", text("別")),
            fact(DocumentRef("cmms/w/1"), "label", text("題名")),
        )
        iri = node_iri(F17)
        assert sorted(await graph.names(9)) == sorted([(iri, "フォークリフト F-17"), (iri, 'f"17\\号車')])
        assert len(await graph.names(1)) == 1

    async def test_who_says_a_name(self, graph: Graph) -> None:
        names = [text("一"), text('f"17\\号車')]
        await put(graph, *(fact(F17, predicate, name) for predicate in ("label", "alias") for name in names))
        iri = node_iri(F17)
        for name in names:
            found = await graph.naming([(iri, name.value), (iri, "他"), ("urn:x", name.value)], None, 5)
            assert {(one.predicate, one.object) for one in found} == {("label", name), ("alias", name)}
            assert [one.iri for one in found] == sorted(one.iri for one in found)
        assert len(await graph.naming([(iri, name.value) for name in names], None, 5)) == 4
        assert await graph.naming([(iri, "一")], ["none"], 5) == []
        assert await graph.naming([(iri, "一")], [], 5) == []
        assert await graph.naming([], None, 5) == []

    async def test_names_of_other_classes_stay_hidden(self, graph: Graph) -> None:
        await put(
            graph,
            fact(F17, "label", text("F-17"), access_class="a"),
            fact(F17, "label", text("F-17"), access_class="b", document="s/c/2"),
            fact(F17, "alias", text("F-17 秘密"), access_class="hidden"),
        )
        assert await graph.find_entities("F-17", ["a", "b"], 9) == [(F17, "F-17")]
        assert await graph.find_entities("秘密", ["a", "b"], 9) == []
        assert await graph.find_entities("F-17", [], 9) == []
        assert len(await graph.find_entities("F-17", None, 9)) == 2

    async def test_a_name_goes_with_its_last_fact(self, graph: Graph) -> None:
        await put(graph, *(fact(F17, "label", text("F-17"), document=f"s/c/{n}") for n in (1, 2)))
        assert len(await graph.find_entities("F-17", None, 9)) == 1
        await graph.collect({"s/c/1": ""}, 1)
        assert len(await graph.find_entities("F-17", None, 9)) == 1
        await graph.collect({"s/c/2": ""}, 2)
        assert await graph.find_entities("F-17", None, 9) == []
