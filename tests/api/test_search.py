"""`POST /v1/search`: hits, filters, highlights, access, paging."""

from typing import Any

import httpx
import pytest

from pipeline.embedded.runtime import EmbeddedRuntime
from tests.api.conftest import Load, as_groups
from tests.api.plant import machine, report

pytestmark = pytest.mark.usefixtures("plant")


async def search(client: httpx.AsyncClient, query: str, *groups: str, **more: Any) -> dict[str, Any]:
    response = await client.post(
        "/v1/search", json={"query": query, **more}, headers=as_groups(*(groups or ("staff",)))
    )
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def keys(found: dict[str, Any]) -> list[str]:
    return [hit["document"]["key"] for hit in found["hits"]]


async def test_exact_identifiers_come_first(client: httpx.AsyncClient) -> None:
    for typed in ("Q-42", "q-42", "Q-42", "Q‐42", "Q−42"):
        found = await search(client, typed, top_k=20)
        exact = [hit["parts"]["exact_identifier"] for hit in found["hits"]]
        assert exact == sorted(exact, reverse=True) and any(exact)
        assert "plant/machines/Q-420" not in keys(found)[: exact.count(True)]
        assert found["query_type"] == "identifier"


async def test_an_identifier_that_nothing_holds_is_told(client: httpx.AsyncClient) -> None:
    said = "no text that you may see, and that the filters let pass, holds "
    assert (await search(client, "Q-42の停止原因"))["warnings"] == []
    assert (await search(client, "Q-42とＱ－４２９の停止原因"))["warnings"] == [said + "q-429"]
    filtered = await search(client, "Q-42の停止原因", filters={"type": "Memo"})
    assert filtered["warnings"] == [said + "q-42"]


async def test_highlights_and_spans_are_exact(client: httpx.AsyncClient) -> None:
    found = await search(client, "軸受の潤滑")
    assert found["hits"][0]["highlights"]
    for hit in found["hits"]:
        body = (await client.get(f"/v1/documents/{hit['document']['key']}")).json()["body"]
        assert body[hit["span"][0] : hit["span"][1]] == hit["text"]
        for start, end in hit["highlights"]:
            assert hit["text"][start:end] and 0 <= start < end <= len(hit["text"])
    assert any(
        "潤滑" in hit["text"][s:e] or "軸受" in hit["text"][s:e] for hit in found["hits"] for s, e in hit["highlights"]
    )


async def test_the_acl_binds_hits_total_and_facets(client: httpx.AsyncClient) -> None:
    staff = await search(client, "賠償の交渉", "staff", top_k=100)
    legal = await search(client, "賠償の交渉", "legal", top_k=100)
    nobody = await search(client, "賠償の交渉", "", top_k=100)
    everything = await search(client, "賠償の交渉", "*", top_k=100)
    assert "plant/reports/S1" not in keys(staff) and "賠償" not in str(staff["hits"])
    assert keys(legal) == ["plant/reports/S1"] and legal["total"] == 1
    assert legal["facets"] == {"source": {"plant": 1}, "collection": {"plant/reports": 1}, "type": {"Report": 1}}
    assert nobody["hits"] == [] and nobody["total"] == 0 and nobody["facets"]["source"] == {}
    assert set(keys(everything)) >= {*keys(staff), "plant/reports/S1"}


async def test_restricted_fields_cannot_be_probed(client: httpx.AsyncClient) -> None:
    allowed = await search(client, "Q-42", "staff", "accounting", filters={"fields": {"price": 1234567}})
    denied = await search(client, "Q-42", "staff", filters={"fields": {"price": 1234567}})
    wrong = await search(client, "Q-42", "staff", filters={"fields": {"price": 5}})
    assert keys(allowed)[0] == "plant/machines/Q-42"
    assert denied["hits"] == wrong["hits"] == [] and denied["facets"] == wrong["facets"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"collection": "machines"}, {"plant/machines/Q-42", "plant/machines/Q-420"}),
        ({"type": ["Report"], "fields": {"status": ["継続"]}}, {"plant/reports/R2"}),
        ({"document": "plant/reports/N1"}, {"plant/reports/N1"}),
        ({"updated_at": {"lt": "2024-12-31"}}, {"plant/reports/N1"}),
        ({"source": ["nowhere"]}, set()),
        ({"updated_at": {"gte": "2024-01-05", "lte": "2024-01-05"}}, {"plant/reports/N1"}),
    ],
)  # fmt: skip
async def test_filters(client: httpx.AsyncClient, filters: dict[str, Any], expected: set[str]) -> None:
    assert set(keys(await search(client, "Q-42 献立 潤滑", filters=filters, top_k=50))) == expected


async def test_a_document_does_not_fill_the_list(client: httpx.AsyncClient, load: Load) -> None:
    long = "\n\n".join(f"## 第{n}節\n\n給水ポンプの点検を行う。番号{n}。" for n in range(40))
    await load([report("L1", long)])
    found = await search(client, "給水ポンプの点検", top_k=20)
    assert keys(found).count("plant/reports/L1") == 2
    whole = await search(client, "給水ポンプの点検", top_k=20, filters={"document": "plant/reports/L1"})
    assert keys(whole).count("plant/reports/L1") > 2


async def test_paging_goes_on_where_it_stopped(client: httpx.AsyncClient) -> None:
    whole = await search(client, "軸受", top_k=6)
    first, second = [await search(client, "軸受", top_k=3, offset=offset) for offset in (0, 3)]
    assert [h["chunk_id"] for h in first["hits"] + second["hits"]] == [h["chunk_id"] for h in whole["hits"]]


async def test_the_answer_is_the_same_twice(client: httpx.AsyncClient) -> None:
    one, two = [await search(client, "停止の原因", explain=True) for _ in range(2)]
    assert one["hits"] == two["hits"] and one["explanation"] == two["explanation"]


@pytest.mark.parametrize("fusion", ["auto", "rrf", "relative", "weighted"])
@pytest.mark.parametrize("alpha", [None, 0.0, 1.0])
async def test_every_fusion_finds(client: httpx.AsyncClient, fusion: str, alpha: float | None) -> None:
    assert "plant/reports/N1" in keys(await search(client, "食堂の献立", fusion=fusion, alpha=alpha, top_k=50))


@pytest.mark.parametrize(
    "query", ["", "   ", "。、!?", "\x00\x07", 'a" OR NEAR(*', "\u202e\ufeff", "ア" * 10_000, "{}[]()"]
)
async def test_no_query_fails(client: httpx.AsyncClient, query: str) -> None:
    await search(client, query)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": "a", "alpha": 2},
        {"query": "a", "offset": -1},
        {"query": "a", "fusion": "x"},
        {"query": "a", "k": 1},
    ],
)
async def test_bad_input_is_400(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    response = await client.post("/v1/search", json=body)
    assert response.status_code == 400 and response.json()["errors"][0]["pointer"] != ""


async def test_an_update_is_found_and_the_old_text_is_not(client: httpx.AsyncClient, load: Load) -> None:
    await load([machine("Q-42", 2, place="屋上", notes="油圧ユニットを更新。")])
    assert "屋上" in str((await search(client, "Q-42 屋上"))["hits"])
    assert "第三倉庫" not in str((await search(client, "Q-42 第三倉庫", top_k=50))["hits"])


async def test_a_narrowed_acl_holds_at_once(client: httpx.AsyncClient, load: Load) -> None:
    await load([report("N1", "食堂の献立は月曜日に変わる。", 2, acl=["kitchen"])])
    assert "plant/reports/N1" not in keys(await search(client, "食堂の献立", "staff", top_k=50))
    assert "plant/reports/N1" in keys(await search(client, "食堂の献立", "kitchen", top_k=50))


async def test_hits_tell_their_stage(client: httpx.AsyncClient, runtime: EmbeddedRuntime) -> None:
    found = await search(client, "献立")
    assert {hit["stage"] for hit in found["hits"]} == {"full"}


async def test_a_further_page_does_not_miss_the_identifier(client: httpx.AsyncClient, load: Load) -> None:
    """It searches in some documents only, and those need not hold it."""
    await load([report(f"T{n}", f"停止原因の調査。{n}回目。") for n in range(30)])
    first = await search(client, "Q-42の停止原因", cursor="", top_k=5)
    await load([report(f"T{n}", f"停止原因の調査。改訂{n}。") for n in range(30)])
    second = await search(client, "Q-42の停止原因", cursor=first["next"], top_k=20)
    assert first["hits"] and second["hits"] and first["warnings"] == second["warnings"] == []
