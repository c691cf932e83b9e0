"""`GET /v1/documents`: what is shown of a document, and to whom."""

from urllib.parse import quote

import httpx
import pytest

from tests.api.conftest import Load, as_groups
from tests.api.plant import CORPUS, report

STAFF = as_groups("staff")


@pytest.mark.usefixtures("plant")
class TestOneDocument:
    async def test_everything_that_is_kept_is_shown(self, client: httpx.AsyncClient) -> None:
        view = (await client.get("/v1/documents/plant/machines/Q-42", headers=STAFF)).json()
        assert view["document"]["title"] == "Q-42 小型粉砕機" and view["document"]["version"] == "1"
        assert view["document"]["stage"] == "full" and view["acl"] == {"allow": [["staff"]], "deny": []}
        assert view["record"]["columns"]["keeper"] == "北村次郎"
        for chunk in view["chunks"]:
            assert view["body"][chunk["start"] : chunk["end"]] == chunk["text"]
        told = {(f["subject"]["label"], f["predicate"], f["object"]["label"]) for f in view["facts"]}
        assert ("Q-42", "is_a", "粉砕機") in told and ("Q-42", "located_at", "第三倉庫") in told

    async def test_restricted_columns_fields_and_facts_are_left_out(self, client: httpx.AsyncClient) -> None:
        url = "/v1/documents/plant/machines/Q-42"
        hidden = (await client.get(url, headers=STAFF)).json()
        shown = (await client.get(url, headers=as_groups("staff", "accounting"))).json()
        assert "1234567" not in str(hidden) and "price" not in str(hidden)
        assert shown["fields"]["price"] == 1234567 and shown["record"]["columns"]["price"] == 1234567
        assert "price" in {fact["predicate"] for fact in shown["facts"]}

    @pytest.mark.parametrize("groups", ["staff", "", "accounting"])
    async def test_who_may_not_read_it_gets_the_404_of_a_missing_one(
        self, client: httpx.AsyncClient, groups: str
    ) -> None:
        hidden = await client.get("/v1/documents/plant/reports/S1", headers=as_groups(groups))
        missing = await client.get("/v1/documents/plant/reports/S9", headers=as_groups(groups))
        assert hidden.status_code == missing.status_code == 404
        assert {**hidden.json(), "instance": ""} == {**missing.json(), "instance": ""}

    async def test_a_deleted_document_is_404(self, client: httpx.AsyncClient, load: Load) -> None:
        await load([{**report("R1", "", 2), "op": "delete", "record": None}])
        assert (await client.get("/v1/documents/plant/reports/R1")).status_code == 404

    async def test_reading_the_past_is_501(self, client: httpx.AsyncClient) -> None:
        assert (await client.get("/v1/documents/plant/reports/R1?as_of=2025-01-01")).status_code == 501


@pytest.mark.parametrize("key", ["a/b/c", "日本 語#?&", "%2F", "a%20b", "a+b;c=d"])
async def test_any_key_can_be_read(client: httpx.AsyncClient, load: Load, key: str) -> None:
    await load([report(key, "本文。")])
    response = await client.get(f"/v1/documents/plant/reports/{quote(key, safe='')}")
    assert response.status_code == 200 and response.json()["document"]["key"] == f"plant/reports/{key}"


async def test_the_list_pages_through_what_the_asker_may_read(client: httpx.AsyncClient, plant: str) -> None:
    seen: list[str] = []
    after = ""
    while True:
        page = (await client.get("/v1/documents", params={"limit": 3, "after": after}, headers=STAFF)).json()
        seen += [document["key"] for document in page["documents"]]
        after = page["next"]
        if not after:
            break
    everything = {f"plant/{event['collection']}/{event['key']}" for event in CORPUS}
    assert seen == sorted(everything - {"plant/reports/S1"})
    machines = (await client.get("/v1/documents?source=plant&collection=machines", headers=STAFF)).json()
    assert [d["key"] for d in machines["documents"]] == ["plant/machines/Q-42", "plant/machines/Q-420"]
    assert (await client.get("/v1/documents?limit=0")).status_code == 400
