"""Filters and access come before the ranking; facets count documents."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import Load, as_groups
from tests.api.plant import machine, report

MANY = 230
"""More than a search for ten hits looks at."""


async def search(client: httpx.AsyncClient, *groups: str, **more: Any) -> dict[str, Any]:
    body = {"query": "小型粉砕機の点検", **more}
    response = await client.post("/v1/search", json=body, headers=as_groups(*(groups or ("staff",))))
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.fixture
async def many(load: Load) -> None:
    notes = "小型粉砕機の点検。" * 3
    plain: dict[str, Any] = {"aliases": None, "keeper": None, "kind": None}
    for start in range(0, MANY, 50):
        await load([machine(f"Q-{n}", notes=notes, **plain) for n in range(start, min(MANY, start + 50))])
    await load([machine("Z-1", name="秤", notes="粉" + "である" * 80, price=77, place="屋上", acl=["staff"], **plain)])


@pytest.mark.usefixtures("many")
async def test_the_worst_of_many_is_found_by_its_filter(client: httpx.AsyncClient) -> None:
    for filters in (
        {"fields": {"place": "屋上"}},
        {"document": "plant/machines/Z-1"},
        {"fields": {"price": 77}},
    ):
        found = await search(client, "staff", "accounting", filters=filters)
        assert {hit["document"]["key"] for hit in found["hits"]} == {"plant/machines/Z-1"}, filters
        assert found["total"] == len(found["hits"]) and found["facets"]["type"] == {"Machine": 1}
        assert not found["warnings"]
    hidden = await search(client, "staff", filters={"fields": {"price": 77}})
    nothing = await search(client, "staff", filters={"fields": {"price": 78}})
    assert hidden["hits"] == nothing["hits"] == [] and hidden["total"] == 0
    assert (await search(client, "staff", "accounting", filters={"fields": {"price": 78}}))["hits"] == []


async def test_hidden_documents_take_no_places(client: httpx.AsyncClient, load: Load) -> None:
    """Dense ranks do not know hidden documents at all; lists of words are filtered while they are read."""
    await load([report(f"O{n}", f"小型粉砕機の点検を行う。{n}回目。") for n in range(8)])
    alone = [await search(client, "staff", top_k=20, alpha=alpha, fusion="rrf") for alpha in (0.0, 1.0)]
    for start in range(0, MANY, 50):
        secret = [report(f"S{n}", "小型粉砕機の点検。" * 4, acl=["legal"]) for n in range(start, min(MANY, start + 50))]
        await load(secret)
    beside = [await search(client, "staff", top_k=20, alpha=alpha, fusion="rrf") for alpha in (0.0, 1.0)]
    for before, after in zip(alone, beside, strict=True):
        assert {h["chunk_id"] for h in before["hits"]} == {h["chunk_id"] for h in after["hits"]}
        assert before["total"] == after["total"] and before["facets"] == after["facets"]
    assert [h["parts"]["dense"] for h in alone[1]["hits"]] == [h["parts"]["dense"] for h in beside[1]["hits"]]
    assert [h["chunk_id"] for h in alone[1]["hits"]] == [h["chunk_id"] for h in beside[1]["hits"]]


@pytest.mark.parametrize(
    ("field", "spellings"),
    [
        ("issued", ["2025-07-08", "2025/7/8", "令和7年7月8日", "R7.7.8", "20250708"]),
        ("measured", ["2025-07-08T09:30:00+09:00", "2025-07-08T00:30:00Z", "2025-07-08 09:30", "2025-07-08T09:30:00"]),
        ("cost", [1200, "1,200", "1200.00", "1,200円", "１２００"]),
        ("closed", [True, "true", "はい"]),
    ],
)
async def test_values_are_read_as_the_field_is(
    client: httpx.AsyncClient, load: Load, field: str, spellings: list[Any]
) -> None:
    typed: dict[str, Any] = {
        "issued": "2025-07-08",
        "measured": "2025-07-08 09:30:00",
        "cost": "1200.0",
        "closed": "有",
    }
    other: dict[str, Any] = {
        "issued": "2025-07-09",
        "measured": "2025-07-08 09:31:00",
        "cost": "1200.5",
        "closed": "無",
    }
    await load([report("R1", "粉砕機の点検。", **typed), report("R2", "粉砕機の点検。", **other)])
    for value in spellings:
        for asked in (value, [value]):
            found = await search(client, filters={"fields": {field: asked}})
            assert [hit["document"]["key"] for hit in found["hits"]] == ["plant/reports/R1"], (field, asked)


async def test_a_filter_by_a_field_that_nobody_knows_says_so(client: httpx.AsyncClient, load: Load) -> None:
    await load([machine("Q-1"), {**report("N1", "粉砕機の点検"), "collection": "loose"}])
    for path, asked in (("/v1/search", "query"), ("/v1/query", "question")):
        body = {asked: "粉砕機の点検", "filters": {"fields": {"pryce": 5, "place": "第1工場"}}}
        answer = (await client.post(path, json=body, headers=as_groups("staff"))).json()
        assert [w for w in answer["warnings"] if "no mapping names the fields pryce;" in w], answer
    known = await search(client, "staff", filters={"fields": {"price": 999_999}})
    assert known["hits"] == [] and not known["warnings"]


async def test_facets_count_documents_not_chunks(client: httpx.AsyncClient, load: Load) -> None:
    long = "\n\n".join(f"## 第{n}節\n\n小型粉砕機の点検を行う。番号{n}。" for n in range(9))
    await load([report("L1", long), machine("Q-1")])
    found = await search(client, "staff", top_k=50)
    assert found["facets"] == {
        "source": {"plant": 2},
        "collection": {"plant/machines": 1, "plant/reports": 1},
        "type": {"Machine": 1, "Report": 1},
    }
    assert found["total"] == len(found["hits"]) > 2
