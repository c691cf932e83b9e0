"""Entities, the graph, SPARQL: what is there, and for whom."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import Load, as_groups
from tests.api.plant import machine

pytestmark = pytest.mark.usefixtures("plant")
STAFF = as_groups("staff")
NOBODY = as_groups("")


class TestEntities:
    async def test_names_and_aliases_are_found(self, client: httpx.AsyncClient) -> None:
        found = (await client.get("/v1/entities", params={"q": "粉砕"}, headers=STAFF)).json()["entities"]
        assert {"粉砕機", "小型粉砕機", "赤い粉砕機"} <= {entity["name"] for entity in found} | {
            e["label"] for e in found
        }
        assert found == sorted(found, key=lambda e: (len(e["name"]), e["name"], e["id"]))

    async def test_an_entity_tells_its_names_relations_and_documents(self, client: httpx.AsyncClient) -> None:
        view = (await client.get("/v1/entities/id:q-42", headers=STAFF)).json()
        assert view["label"] == "Q-42" and view["type"] == "Equipment"
        assert "赤い粉砕機" in view["aliases"] and view["iri"].startswith("urn:shinsen:entity:")
        told = {(fact["predicate"], fact["object"]["label"]) for fact in view["facts"]}
        assert {("is_a", "粉砕機"), ("located_at", "第三倉庫"), ("kept_by", "北村次郎")} <= told
        assert "price" not in str(view) and "plant/reports/S1" not in str(view)

    async def test_only_what_the_asker_may_read(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/v1/entities/id:q-42", headers=NOBODY)).status_code == 404
        assert (await client.get("/v1/entities", params={"q": "粉砕"}, headers=NOBODY)).json() == {"entities": []}
        lawyer = (await client.get("/v1/entities/id:q-42", headers=as_groups("legal"))).json()
        assert {document["id"] for document in lawyer["documents"]} == {"document:plant/reports/S1"}

    async def test_restricted_facts_are_for_those_permitted(self, client: httpx.AsyncClient) -> None:
        view = (await client.get("/v1/entities/id:q-42", headers=as_groups("staff", "accounting"))).json()
        assert ("price", "1234567") in {(fact["predicate"], fact["object"]["label"]) for fact in view["facts"]}

    async def test_a_removed_alias_is_gone(self, client: httpx.AsyncClient, load: Load) -> None:
        await load([machine("Q-42", 2, aliases="白い粉砕機")])
        assert "赤い粉砕機" not in (await client.get("/v1/entities/id:q-42")).json()["aliases"]
        gone = (await client.get("/v1/entities", params={"q": "赤い粉砕機"})).json()
        assert gone["entities"] == [] and [one["text"] for one in gone["suggestions"]] == ["白い粉砕機"]

    async def test_pages_stay_in_order_while_names_come_and_go(self, client: httpx.AsyncClient, load: Load) -> None:
        plain: dict[str, Any] = {"aliases": None, "kind": None, "place": None, "keeper": None}
        await load([machine(f"Z-{n}", name=f"{n:02d}号送風機", **plain) for n in range(10, 40)])
        seen: list[str] = []
        after = ""
        for n in range(20):
            params = {"q": "号送風機", "limit": "7", "after": after}
            page = (await client.get("/v1/entities", params=params, headers=STAFF)).json()
            seen += [entity["name"] for entity in page["entities"]]
            if not (after := page.get("next", "")):
                break
            changed = [
                machine(f"Z-{12 + n}", 2, name="別物", **plain),
                machine(f"Z-{50 + n}", name=f"0{n}号送風機", **plain),
            ]
            await load(changed)
        assert seen == sorted(seen) and len(seen) == len(set(seen))
        assert {f"{n}号送風機" for n in (10, 11, *range(20, 40))} <= set(seen)
        wrong = await client.get("/v1/entities", params={"q": "号", "after": "x!"})
        assert wrong.status_code == 400 and wrong.json()["errors"][0]["pointer"] == "/after"

    @pytest.mark.parametrize("url", ["/v1/entities/id:zz-99", "/v1/entities/nonsense", "/v1/entities/:"])
    async def test_unknown_ones_are_404(self, client: httpx.AsyncClient, url: str) -> None:
        assert (await client.get(url)).status_code == 404

    @pytest.mark.parametrize("url", ["/v1/entities", "/v1/entities?q=", "/v1/entities?q=a&limit=0"])
    async def test_bad_parameters_are_400(self, client: httpx.AsyncClient, url: str) -> None:
        response = await client.get(url)
        assert response.status_code == 400 and response.json()["errors"]


class TestGraph:
    async def around(self, client: httpx.AsyncClient, groups: str, **params: Any) -> dict[str, Any]:
        response = await client.get("/v1/graph", params=params, headers=as_groups(groups))
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    async def test_two_hops_reach_the_manual(self, client: httpx.AsyncClient) -> None:
        near = await self.around(client, "staff", entity="Q-42", hops=1)
        far = await self.around(client, "staff", entity="Q-42", hops=2)
        assert "document:plant/reports/M1" not in {node["id"] for node in near["nodes"]}
        edges = {(edge["source"], edge["predicate"], edge["target"]) for edge in far["edges"]}
        assert ("document:plant/reports/M1", "applies_to", "concept:粉砕機") in edges
        labels = {node["id"]: node["label"] for node in far["nodes"]}
        assert labels["id:q-42"] == "Q-42" and labels["document:plant/reports/M1"] == "安全手順書"
        assert all(edge["source"] in labels and edge["target"] in labels for edge in far["edges"])

    async def test_relations_limit_the_edges(self, client: httpx.AsyncClient) -> None:
        found = await self.around(client, "staff", entity="id:q-42", hops=3, relations="is_a")
        assert {edge["predicate"] for edge in found["edges"]} == {"is_a"}

    async def test_the_acl_binds_nodes_and_edges(self, client: httpx.AsyncClient) -> None:
        found = await self.around(client, "staff", entity="Q-42", hops=3)
        assert "S1" not in str(found) and "秘密" not in str(found) and "1234567" not in str(found)
        assert (await client.get("/v1/graph?entity=Q-42", headers=NOBODY)).status_code == 404
        hidden = await client.get("/v1/graph?entity=document:plant/reports/S1", headers=STAFF)
        assert hidden.status_code == 404

    @pytest.mark.parametrize("query", ["", "entity=Q-42&hops=0", "entity=Q-42&hops=4", "entity=Q-42&hops=x"])
    async def test_bad_parameters_are_400(self, client: httpx.AsyncClient, query: str) -> None:
        assert (await client.get(f"/v1/graph?{query}")).status_code == 400


class TestSparql:
    SELECT = "SELECT DISTINCT ?o WHERE { ?s <urn:shinsen:v:is_a> ?o } ORDER BY ?o"
    PRICE = "ASK { ?s <urn:shinsen:v:price> ?o }"

    async def run(
        self, client: httpx.AsyncClient, query: str, groups: str = "staff", accept: str = "*/*"
    ) -> httpx.Response:
        return await client.post("/v1/sparql", json={"query": query}, headers={**as_groups(groups), "accept": accept})

    async def test_rows_come_as_json_csv_or_tsv(self, client: httpx.AsyncClient) -> None:
        as_json = await self.run(client, self.SELECT)
        assert as_json.headers["content-type"].startswith("application/sparql-results+json")
        assert len(as_json.json()["results"]["bindings"]) == 2
        as_csv = await self.run(client, self.SELECT, accept="text/csv")
        assert as_csv.headers["content-type"].startswith("text/csv") and as_csv.text.startswith("o\r\n")
        best = await self.run(client, self.SELECT, accept="text/csv;q=0.5, application/sparql-results+xml")
        assert best.headers["content-type"].startswith("application/sparql-results+xml")

    async def test_triples_come_as_turtle(self, client: httpx.AsyncClient) -> None:
        query = "CONSTRUCT { ?s a ?o } WHERE { ?s <urn:shinsen:v:is_a> ?o }"
        turtle = await self.run(client, query)
        assert turtle.headers["content-type"].startswith("text/turtle") and turtle.status_code == 200
        assert (await self.run(client, query, accept="text/csv")).status_code == 406

    async def test_only_permitted_classes_are_asked(self, client: httpx.AsyncClient) -> None:
        assert (await self.run(client, self.PRICE, "staff")).json()["boolean"] is False
        assert (await self.run(client, self.PRICE, "staff,accounting")).json()["boolean"] is True
        assert (await self.run(client, "ASK { ?s ?p ?o }", "")).json()["boolean"] is False

    @pytest.mark.parametrize(
        "query",
        [
            "DELETE WHERE { ?s ?p ?o }",
            "INSERT DATA { <urn:a> <urn:b> <urn:c> }",
            "SELECT * WHERE { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
            "SELECT * FROM <file:///etc/passwd> WHERE { ?s ?p ?o }",
            "SELECT WHERE",
            "",
        ],
    )
    async def test_all_else_is_refused(self, client: httpx.AsyncClient, query: str) -> None:
        response = await self.run(client, query)
        assert response.status_code == 400, response.text
        assert response.headers["content-type"].startswith("application/problem+json")

    async def test_bodies(self, client: httpx.AsyncClient) -> None:
        raw = await client.post(
            "/v1/sparql", content=self.SELECT, headers={**STAFF, "content-type": "application/sparql-query"}
        )
        assert raw.status_code == 200
        assert (await client.post("/v1/sparql", json={"sparql": "x"})).json()["errors"][0]["pointer"] == "/sparql"
        assert (await client.post("/v1/sparql", data={"query": "x"})).status_code == 415


async def test_nl2sparql_is_501(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/nl2sparql", json={"question": "何台あるか"})).status_code == 501
