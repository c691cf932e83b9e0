"""Names by how they are read: kana for kanji, one kanji for another that sounds the same."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from pipeline.settings import Settings
from pipeline.text.readings import Readings, sound
from pipeline.wiring import open_embedded
from tests.api.conftest import MAPPINGS, client_of
from tests.api.plant import machine

pytestmark = pytest.mark.models
in_module = pytest.mark.asyncio(loop_scope="module")
NAMES = ["齋藤", "フォークリフト", "粉砕機", "㈱山田製作所", "給油ポンプ", "渡邊工務店", "第一工場"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    plain: dict[str, Any] = {"aliases": None, "kind": None, "place": None, "keeper": None, "notes": None}
    posted = [machine(f"Q-{n}", name=name, **plain) for n, name in enumerate(NAMES)]
    given = {"data": tmp_path_factory.mktemp("read"), "mappings": MAPPINGS, "embedder": "none", "workers": 1}
    settings = Settings.model_validate(given)
    async with open_embedded(settings) as runtime, client_of(runtime, settings) as opened:
        assert (await opened.post("/v1/events?wait=applied&timeout=60s", json=posted)).status_code == 200
        yield opened


@in_module
@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("さいとう", "齋藤"),
        ("サイトー", "齋藤"),
        ("斉藤", "齋藤"),
        ("斎藤", "齋藤"),
        ("さいと", "齋藤"),
        ("ふぉーくりふと", "フォークリフト"),
        ("ﾌｫｰｸﾘﾌﾄ", "フォークリフト"),
        ("ふんさいき", "粉砕機"),
        ("ふんさい", "粉砕機"),
        ("紛砕機", "粉砕機"),
        ("かぶしきがいしゃやまだ", "㈱山田製作所"),
        ("株式会社山田製作", "㈱山田製作所"),
        ("きゅうゆぽんぷ", "給油ポンプ"),
        ("給油ホンプ", "給油ポンプ"),
        ("わたなべこうむてん", "渡邊工務店"),
        ("渡部工務店", "渡邊工務店"),
    ],
)
async def test_suggested(client: httpx.AsyncClient, typed: str, name: str) -> None:
    found = (await client.get("/v1/suggestions", params={"q": typed})).json()["suggestions"]
    assert found and found[0]["text"] == name


@in_module
@pytest.mark.parametrize("typed", ["第二工場", "さとう", "加藤", "ふんすい", "山本", "こうむ"])
async def test_not_suggested(client: httpx.AsyncClient, typed: str) -> None:
    assert (await client.get("/v1/suggestions", params={"q": typed})).json()["suggestions"] == []


@in_module
async def test_a_search_asks_what_was_meant(client: httpx.AsyncClient) -> None:
    found = (await client.post("/v1/search", json={"query": "ふぉーくりふと"})).json()
    assert found["suggestions"][0]["text"] == "フォークリフト"


def test_one_sound() -> None:
    read = Readings()
    assert sound(read.of("斎藤")) == sound("さいとー") == sound("サイトウ")
    assert sound("コーヒー") != sound("コピー")
    assert sound(read.of("F-17号車")) == sound(read.of("ｆ17ごうしゃ"))
