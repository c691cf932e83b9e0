"""`expand` and `snippet` of a search: exact offsets, only of what stands and may be read, within limits."""

import unicodedata
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.retrieval.context import snippet
from tests.api.conftest import Load, as_groups
from tests.api.plant import report

STEPS = "".join(f"手順{{0}}の{k}番を行う。異常があれば記録する。" for k in range(12))
SECTIONS = [f"## 第{n}節\n\n" + STEPS.format(n) for n in range(20)]
BODY = "\n\n".join([*SECTIONS[:10], "## 特記\n\n潤滑剤は毎月交換する。", *SECTIONS[10:]])


@pytest.fixture
async def document(load: Load) -> None:
    await load([report("L1", BODY), report("L2", "潤滑剤の在庫。"), report("S9", BODY, acl=["legal"])])


async def search(client: httpx.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    body = {"query": "潤滑剤の交換", "top_k": 5, **more}
    response = await client.post("/v1/search", json=body, headers=as_groups("staff"))
    assert response.status_code == 200, response.text
    hits: list[dict[str, Any]] = response.json()["hits"]
    return hits


@pytest.mark.usefixtures("document")
class TestExpand:
    @pytest.mark.parametrize(
        "expand",
        [{}, {"neighbours": 1}, {"neighbours": 5}, {"parent": True}, {"parent": True, "max_characters": 20_000}],
    )
    async def test_parts_are_exactly_of_the_body_and_hold_the_hit(
        self, client: httpx.AsyncClient, expand: dict[str, Any]
    ) -> None:
        hits = await search(client, expand=expand)
        assert "plant/reports/L1" in {hit["document"]["key"] for hit in hits} and "S9" not in str(hits)
        for hit in hits:
            body = (await client.get(f"/v1/documents/{hit['document']['key']}")).json()["body"]
            spans = [tuple(part["span"]) for part in hit["context"]]
            assert all(body[slice(*part["span"])] == part["text"] for part in hit["context"])
            assert spans == sorted(spans) and all(a[1] < b[0] for a, b in pairwise(spans))
            assert any(start <= hit["span"][0] and hit["span"][1] <= end for start, end in spans)
            assert spans[-1][1] - spans[0][0] <= max(expand.get("max_characters", 4_000), len(hit["text"]))

    async def test_neighbours_are_those_next_to_it(self, client: httpx.AsyncClient) -> None:
        def around(hits: list[dict[str, Any]]) -> str:
            mine = next(hit for hit in hits if "毎月交換" in hit["text"] and hit["document"]["key"].endswith("L1"))
            return "".join(part["text"] for part in mine["context"])

        one = around(await search(client, expand={"neighbours": 1}))
        assert "第9節" in one and "第10節" in one and "第8節" not in one and "第11節" not in one
        whole = around(await search(client, expand={"parent": True, "max_characters": 20_000}))
        assert all(f"手順{n}の11番" in whole for n in range(20))
        assert all(hit["context"] is None for hit in await search(client))

    async def test_limits(self, client: httpx.AsyncClient) -> None:
        for wrong in ({"neighbours": 6}, {"neighbours": -1}, {"max_characters": 20_001}, {"more": 1}):
            response = await client.post("/v1/search", json={"query": "潤滑", "expand": wrong})
            assert response.status_code == 400 and response.json()["errors"][0]["pointer"].startswith("/expand")


@pytest.mark.usefixtures("document")
async def test_a_snippet_shows_what_was_asked_for(client: httpx.AsyncClient, load: Load) -> None:
    long = "記録である。" * 60 + "潤滑剤の交換は毎月とする。" + "以上である。" * 60
    await load([report("L3", long)])
    for hit in await search(client, snippet=60):
        body = (await client.get(f"/v1/documents/{hit['document']['key']}")).json()["body"]
        shown = hit["snippet"]
        assert body[slice(*shown["span"])] == shown["text"] and len(shown["text"]) <= 60
        marked = {shown["text"][s:e] for s, e in shown["highlights"]}
        assert marked <= {hit["text"][s:e] for s, e in hit["highlights"]}
        if hit["document"]["key"].endswith("L3") and "潤滑剤の交換" in hit["text"]:
            assert "潤滑剤の交換" in shown["text"]
    assert (await client.post("/v1/search", json={"query": "a", "snippet": 39})).status_code == 400


MARKS = ["か\u3099", "葛\U000e0100", "👩\u200d👧", "ｶﾞ", "𠮷", "潤滑", "。", "\n", "e\u0301", "a", "油"]


@given(st.lists(st.sampled_from(MARKS), max_size=120), st.integers(40, 90), st.data())
def test_a_snippet_cuts_no_character(parts: list[str], size: int, data: st.DataObject) -> None:
    text = "".join(parts)
    places = [0]
    for part in parts:
        places.append(places[-1] + len(part))
    starts = data.draw(st.lists(st.integers(0, max(0, len(parts) - 1)), unique=True, max_size=6)) if parts else []
    spans = [(places[n], places[n + 1]) for n in sorted(starts)]
    found = snippet(text, 7, spans, size)
    start, end = found.span[0] - 7, found.span[1] - 7
    assert text[start:end] == found.text and len(found.text) <= size
    for edge in (start, end):
        if 0 < edge < len(text):
            assert not unicodedata.combining(text[edge]) and text[edge] not in "\u200dﾞ" and text[edge - 1] != "\u200d"
    assert all(0 <= s < e <= len(found.text) for s, e in found.highlights)
    assert bool(found.highlights) >= bool(spans)
