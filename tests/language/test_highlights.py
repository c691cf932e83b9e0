"""Highlights through `POST /v1/search`: what was found is marked, in whatever spelling it stands."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from tests.language.conftest import search_only

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

CASES = [
    ("サーバー", "予備のサーバを起動した。", "サーバ"),
    ("2025年3月4日", "令和7年3月4日に検収した。", "令和7年3月4日"),
    ("千二百円", "単価は１，２００円である。", "１，２００円"),
    ("問い合わせ", "問合せは窓口で受ける。", "問合せ"),
    ("ヴァイオリン", "バイオリンの弦を張る。", "バイオリン"),
    ("渡辺", "渡邉が確認した。", "渡邉"),
    ("引き渡し", "設備を引渡した。", "引渡し"),
    ("スマートフォン", "スマホで撮影する。", "スマホ"),
    ("ＱＸ－９", "QX-9の写真。", "QX-9"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    posted = [
        {
            "source": "s",
            "collection": "c",
            "key": str(n),
            "op": "upsert",
            "position": 1,
            "record": {"title": "記録", "body": body},
        }
        for n, (_, body, _) in enumerate(CASES)
    ]
    async with search_only(tmp_path_factory.mktemp("marked"), posted) as opened:
        yield opened


@pytest.mark.parametrize("number", range(len(CASES)))
async def test_marked(client: httpx.AsyncClient, number: int) -> None:
    question, body, wanted = CASES[number]
    hits = (await client.post("/v1/search", json={"query": question})).json()["hits"]
    marked = {hit["text"]: [hit["text"][start:end] for start, end in hit["highlights"]] for hit in hits}
    assert marked[body] == [wanted]
