"""Types of queries, fusion, and what an explanation tells of a ranking."""

from typing import Any, get_args

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.retrieval.fusion import fuse
from api.retrieval.query_types import TYPES, query_type
from pipeline.embedded.runtime import EmbeddedRuntime
from pipeline.ports.chunk_index import IndexHit
from pipeline.steps.rank_features import FEATURES
from schemas.query import Fusion
from tests.api.conftest import Load
from tests.api.plant import report
from tests.language.pairs import analysis

METHODS = get_args(Fusion)
HITS = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-3, 90), max_size=8).map(
    lambda found: [IndexHit(i, f"doc-{i}", s) for i, s in sorted(found.items(), key=lambda one: -one[1])]
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("MR-2291", "identifier"),
        ("E-4021 E-4012", "identifier"),
        ("髙橋健一", "proper_noun"),
        ("ポルトガル", "proper_noun"),
        ("F-17の事故原因は何か。", "natural_sentence"),
        ("パスワードを忘れたらどうしますか?", "natural_sentence"),
        ("家で働くときに守ること", "concept"),
        ("車を止めたのに勝手に動いた", "concept"),
        ("非常用自家発電設備点検記録", "long_compound"),
        ("輪止め", "short_keyword"),
        ("稟議 差戻し", "short_keyword"),
        ("", "short_keyword"),
        ("!!! ???"[:3], "short_keyword"),
    ],
)
def test_the_kind_of_a_query(text: str, kind: str) -> None:
    analyzer = analysis()
    typed = query_type(text, analyzer.terms.analyze(text), analyzer.questions.form(text))
    assert typed.kind == kind and typed.reasons and kind in TYPES


@given(HITS, HITS, st.sampled_from(METHODS), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_fusion_loses_nothing_and_orders_by_score_then_document(
    lexical: list[IndexHit], dense: list[IndexHit], method: Any, alpha: float
) -> None:
    fused = fuse(lexical, dense, method, alpha)
    assert {one.id for one in fused} == {hit.id for hit in (*lexical, *dense)}
    assert [(-one.score, one.document, one.id) for one in fused] == sorted(
        (-one.score, one.document, one.id) for one in fused
    )
    assert all(0 <= one.score <= 1 + 1e-9 for one in fused)


def test_one_far_off_score_does_not_decide_alone_by_distribution() -> None:
    lexical = [IndexHit("far", "d1", 100.0), *(IndexHit(f"near{n}", f"e{n}", 3.0 - n / 10) for n in range(9))]
    dense = [IndexHit(f"near{n}", f"e{n}", 0.9 - n / 100) for n in range(9)]
    relative, spread = (fuse(lexical, dense, method, 0.45)[0].id for method in ("relative", "distribution"))
    assert (relative, spread) == ("far", "near0")


async def test_an_explanation_tells_type_reasons_weights_coverage_and_features(
    client: httpx.AsyncClient, load: Load, runtime: EmbeddedRuntime
) -> None:
    await load([report(f"P{n}", f"給水ポンプの点検。番号{n}。") for n in range(12)])
    body = {"query": "給水ポンプの点検はいつか", "explain": True}
    told = (await client.post("/v1/search", json=body)).json()["explanation"]
    assert told["query_type"] == "natural_sentence" and told["reasons"]
    assert 0 <= told["reranker"]["coverage"] <= 1 and set(told["reranker"]["weights"]) <= set(FEATURES)
    assert sum(told["reranker"]["weights"].values()) == pytest.approx(1, abs=0.01)
    assert len(told["features"]) == 12 and all(set(row) == set(FEATURES) for row in told["features"].values())
    plain = (await client.post("/v1/search", json={**body, "rerank": False})).json()["explanation"]
    assert "features" not in plain and plain["dense_weight"] == told["dense_weight"]
    by_words = (await client.post("/v1/search", json={**body, "alpha": 0.0})).json()["explanation"]
    assert by_words["dense_weight"] == 0.0 and not {"dense", "dense_uncovered"} & set(by_words["reranker"]["weights"])


@pytest.mark.parametrize("method", METHODS)
async def test_every_fusion_can_be_asked_for(client: httpx.AsyncClient, load: Load, method: str) -> None:
    await load([report(f"P{n}", f"給水ポンプの点検。番号{n}。") for n in range(5)])
    found = (await client.post("/v1/search", json={"query": "給水ポンプ", "fusion": method, "rerank": False})).json()
    assert len(found["hits"]) == 5


def _long_report(number: int) -> Any:
    """A report whose title holds the words of its second part, and whose other parts are short."""
    told = "朝の見回りのとき、減速機から異音がした。担当者が止めて、油の量と軸の温度と取付けのねじを確かめた。" * 2
    parts = ("軸の摩耗。", told, "軸を替える。", "済。")
    body = "\n\n".join(f"# 項目{n}\n\n{text}" for n, text in enumerate(parts))
    return report(f"N{number:02d}", body, title=f"減速機{number}号の異音")


@pytest.mark.parametrize("rerank", [True, False])
async def test_a_later_part_of_a_list_is_the_same_asked_for_alone(
    client: httpx.AsyncClient, load: Load, rerank: bool
) -> None:
    await load([_long_report(n) for n in range(60)])

    async def page(offset: int, top_k: int) -> list[str]:
        asked = {"query": "減速機の異音", "offset": offset, "top_k": top_k, "rerank": rerank}
        return [hit["chunk_id"] for hit in (await client.post("/v1/search", json=asked)).json()["hits"]]

    whole = await page(0, 100)
    assert len(set(whole)) == 100
    for offset in (10, 40, 49, 50, 51, 60, 99):
        assert await page(offset, 100 - offset) == whole[offset:]
