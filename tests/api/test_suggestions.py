"""Names that may have been meant: while typing, and where little was found; only what the asker may know of."""

import asyncio
import time
from typing import Any

import httpx
import pytest

from api.retrieval import suggest
from tests.api.conftest import Load, as_groups
from tests.api.plant import event, machine, report


def equipment(key: str, position: int = 1, **changes: Any) -> Any:
    return machine(key, position, **{"aliases": None, "kind": None, "place": None, "keeper": None, **changes})


async def suggested(client: httpx.AsyncClient, q: str, *groups: str, **more: Any) -> list[tuple[str, str]]:
    response = await client.get("/v1/suggestions", params={"q": q, **more}, headers=as_groups(*(groups or ("staff",))))
    assert response.status_code == 200, response.text
    return [(one["text"], one["match"]) for one in response.json()["suggestions"]]


@pytest.fixture
async def names(load: Load) -> None:
    await load([
        equipment("Q-1", name="フォークリフト"),
        equipment("Q-2", name="フォークリフト置場"),
        equipment("Q-3", name="バッテリー充電器"),
        equipment("Q-4", name="ベルトコンベヤ"),
        equipment("Q-5", name="高所作業車A-17"),
    ])  # fmt: skip


@pytest.mark.usefixtures("names")
class TestLikeness:
    @pytest.mark.parametrize(
        ("typed", "match"),
        [
            ("ふぉーくりふと", "same"),
            ("ﾌｫｰｸﾘﾌﾄ", "same"),
            ("フォークリフト", "same"),
            ("フォクリフト", "reading"),
            ("フォーク", "prefix"),
            ("ふぉー", "prefix"),
            ("フォークリスト", "spelling"),
            ("フォークルフト", "spelling"),
            ("フークォリフト", "spelling"),
            ("ふぉーくりふ", "prefix"),
            ("フォグリフト", "spelling"),
        ],
    )
    async def test_found(self, client: httpx.AsyncClient, typed: str, match: str) -> None:
        assert (await suggested(client, typed))[0] == ("フォークリフト", match)

    @pytest.mark.parametrize(
        "typed", ["", "  ", "ん", "献立", "クレーン", "フォント", "\x00", "。。。", "%" * 50, "𠮷" * 90]
    )
    async def test_nothing_like_it(self, client: httpx.AsyncClient, typed: str) -> None:
        assert await suggested(client, typed) == []

    async def test_another_number_is_another_thing(self, client: httpx.AsyncClient) -> None:
        assert ("高所作業車A-17", "same") in await suggested(client, "高所作業車Ａ－１７")
        assert await suggested(client, "高所作業車A-18") == []

    async def test_the_likest_first_and_no_more_than_asked_for(self, client: httpx.AsyncClient) -> None:
        assert [text for text, _ in await suggested(client, "フォークリフト")] == [
            "フォークリフト",
            "フォークリフト置場",
        ]
        assert len(await suggested(client, "フ", limit=1)) == 1

    @pytest.mark.parametrize("params", [{}, {"q": "a" * 101}, {"q": "a", "limit": 0}, {"q": "a", "limit": 99}])
    async def test_bad_parameters_are_400(self, client: httpx.AsyncClient, params: dict[str, Any]) -> None:
        assert (await client.get("/v1/suggestions", params=params)).status_code == 400

    async def test_a_search_by_name_suggests(self, client: httpx.AsyncClient) -> None:
        found = (await client.get("/v1/entities", params={"q": "ふぉーくりすと"})).json()
        assert found["entities"] == [] and found["suggestions"][0]["text"] == "フォークリフト"

    async def test_search_and_answers_suggest_where_little_is_found(self, client: httpx.AsyncClient) -> None:
        search = (await client.post("/v1/search", json={"query": "ふぉぐりふと"})).json()
        assert [one["text"] for one in search["suggestions"]] == ["フォークリフト"]
        assert search["suggestions"][0]["entities"]
        answer = (await client.post("/v1/query", json={"question": "べるどこんべや"})).json()
        assert not answer["answer"]["answerable"]
        assert [one["text"] for one in answer["suggestions"]] == ["ベルトコンベヤ"]

    async def test_what_was_found_needs_no_suggestion(self, client: httpx.AsyncClient) -> None:
        assert (await client.post("/v1/search", json={"query": "フォークリフト"})).json()["suggestions"] == []

    async def test_a_search_does_not_wait_for_names_and_its_end_does_not_stop_their_reading(
        self, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patience:
            patience.setattr(suggest, "_SUGGESTION_S", 0.0)
            assert (await client.post("/v1/search", json={"query": "ふぉぐりふと"})).json()["suggestions"] == []
        await asyncio.sleep(0.3)
        monkeypatch.setattr(suggest, "_QUICK_S", -1.0)
        assert (await client.post("/v1/search", json={"query": "ふぉぐりふと"})).json()["suggestions"]


class TestAccess:
    async def test_a_name_that_only_hidden_documents_hold_is_never_told(
        self, client: httpx.AsyncClient, load: Load
    ) -> None:
        await load([equipment("Q-1", name="キムクレーン"), equipment("Q-7", name="ヒミツクレーン", acl=["legal"])])
        await load([report("S2", "ヒミツプロジェクトを進める。", acl=["legal"])])
        for typed in ("ひみつくれーん", "ヒミツクレー", "ヒミツグレーン", "ヒミ", "ヒミツプロジェクト"):
            assert await suggested(client, typed, "staff") == []
            assert await suggested(client, typed, "") == []
        assert (await client.post("/v1/search", json={"query": "ヒミツグレーン"}, headers=as_groups("staff"))).json()[
            "suggestions"
        ] == []

    async def test_many_hidden_names_do_not_crowd_out_one(self, client: httpx.AsyncClient, load: Load) -> None:
        secret = [report(f"S{n}", f"キロクソウチ{chr(0x30A2 + 2 * n)}を使う。", acl=["legal"]) for n in range(30)]
        await load([*secret, equipment("Q-1", name="キロクソウチミエルモノ")])
        assert [text for text, _ in await suggested(client, "キロクソウチ", "staff")] == ["キロクソウチミエルモノ"]


class TestChanges:
    async def test_a_new_name_is_suggested_and_a_deleted_one_is_not(
        self, client: httpx.AsyncClient, load: Load
    ) -> None:
        assert await suggested(client, "コンプレッサ") == []
        await load([equipment("Q-9", name="コンプレッサー")])
        assert (await suggested(client, "こんぷれっさ"))[0][0] == "コンプレッサー"
        await load([equipment("Q-9", 2, name="コンデンサー")])
        assert await suggested(client, "こんぷれっさ") == []
        assert (await suggested(client, "こんでんさ"))[0][0] == "コンデンサー"
        await load([event("machines", "Q-9", 3, None)])
        assert await suggested(client, "こんでんさ") == []

    async def test_many_names_are_read_beside_the_requests(
        self, client: httpx.AsyncClient, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(suggest, "_AT_ONCE", 5)
        monkeypatch.setattr(suggest, "_QUICK_S", 0.0)
        await load([equipment(f"Q-{n}", name=f"第{n}送風機") for n in range(70)])
        assert (await suggested(client, "第65送風機"))[0] == ("第65送風機", "same")
        await load([equipment("Q-9", 2, name="トクベツソウチ")])
        deadline = time.monotonic() + 10
        while not (found := await suggested(client, "とくべつ")) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        assert found[0][0] == "トクベツソウチ"
