"""Pages by cursor: random changes between them, cursors that are old, foreign or no cursors at all."""

import base64
import random
import zlib
from typing import Any

import httpx
import msgspec
import pytest

from api.retrieval import paging
from pipeline.embedded.runtime import EmbeddedRuntime
from tests.api.conftest import Load, as_groups
from tests.api.plant import Event, event, report

BOMB = base64.urlsafe_b64encode(zlib.compress(b"\0" * 90_000_000)).decode()[:250_000]
WORDS = ["軸受", "潤滑", "点検", "油圧", "清掃"]


def note(key: int, position: int, rng: random.Random, **changes: Any) -> Event:
    return report(f"P{key}", "軸受の記録。" + "".join(rng.choices(WORDS, k=6)) + f"番号{key}。", position, **changes)


async def page(client: httpx.AsyncClient, cursor: str, top_k: int, *groups: str, **more: Any) -> dict[str, Any]:
    body = {"query": "軸受の点検", "top_k": top_k, "cursor": cursor, **more}
    response = await client.post("/v1/search", json=body, headers=as_groups(*(groups or ("staff",))))
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def keys(found: dict[str, Any]) -> list[str]:
    return [hit["document"]["key"].rpartition("/")[2] for hit in found["hits"]]


async def test_pages_together_are_the_whole_list(client: httpx.AsyncClient, load: Load) -> None:
    rng = random.Random(1)
    await load([note(n, 1, rng) for n in range(90)])
    whole = (
        await client.post("/v1/search", json={"query": "軸受の点検", "top_k": 100}, headers=as_groups("staff"))
    ).json()
    paged: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        found = await page(client, cursor, 7)
        assert len(found["hits"]) <= 7 and found["total"] > 0
        paged += [hit["chunk_id"] for hit in found["hits"]]
        cursor = found["next"]
    plain = await client.post("/v1/search", json={"query": "軸受の点検", "top_k": 7}, headers=as_groups("staff"))
    assert paged[:7] == [hit["chunk_id"] for hit in plain.json()["hits"]]
    assert len(paged) == len(set(paged)) and set(paged) == {hit["chunk_id"] for hit in whole["hits"]}


@pytest.mark.parametrize("seed", range(2))
async def test_whatever_changes_between_pages(client: httpx.AsyncClient, load: Load, seed: int) -> None:
    """No document twice, none that stood unchanged left out, and nothing shown that may not be seen any more."""
    rng = random.Random(seed)
    await load([note(n, 1, rng) for n in range(24)])
    seen: list[str] = []
    unchanged = set(range(24))
    gone: set[str] = set()
    cursor: str | None = ""
    position = 1
    while cursor is not None:
        found = await page(client, cursor, rng.choice([1, 5, 9]))
        cursor = found["next"]
        assert not gone & set(keys(found)), "shown though deleted or hidden before"
        for hit in found["hits"]:
            body = (await client.get(f"/v1/documents/{hit['document']['key']}", headers=as_groups("staff"))).json()[
                "body"
            ]
            assert body[hit["span"][0] : hit["span"][1]] == hit["text"], "not the text of now"
        seen += keys(found)
        position += 1
        changes = []
        for n in rng.sample(range(24), 3):
            unchanged.discard(n)
            kind = rng.choice(["update", "delete", "hide"]) if f"P{n}" not in gone else "again"
            if kind == "delete":
                changes.append(event("reports", f"P{n}", position, None))
                gone.add(f"P{n}")
            elif kind == "hide":
                changes.append(note(n, position, rng, acl=["legal"]))
                gone.add(f"P{n}")
            else:
                changes.append(note(n, position, rng))
                gone.discard(f"P{n}")
        if position < 5:
            changes.append(note(100 + position, 1, rng))
        await load(changes)
    assert len(seen) == len(set(seen)), "shown twice"
    assert {f"P{n}" for n in unchanged} <= set(seen), "left out though nothing happened to it"


async def test_a_changed_hit_stands_where_it_stood(client: httpx.AsyncClient, load: Load) -> None:
    rng = random.Random(3)
    await load([note(n, 1, rng) for n in range(12)])
    whole = keys(await page(client, "", 12))
    first = await page(client, "", 3)
    await load([report(whole[4], "軸受の点検は中止した。", 2)])
    second = await page(client, first["next"], 3)
    assert keys(second) == whole[3:6] and second["hits"][1]["text"] == "軸受の点検は中止した。"


async def test_a_list_goes_on_beyond_the_first_search(client: httpx.AsyncClient, load: Load) -> None:
    rng = random.Random(4)
    await load([note(n, 1, rng) for n in range(120)])
    cursor: str | None = ""
    seen: list[str] = []
    while cursor is not None:
        found = await page(client, cursor, 20)
        seen += keys(found)
        cursor = found["next"]
    assert len(seen) == len(set(seen)) and {f"P{n}" for n in range(120)} <= set(seen)


class TestCursors:
    async def bad(self, client: httpx.AsyncClient, cursor: str, **more: Any) -> httpx.Response:
        return await client.post("/v1/search", json={"query": "軸受", "cursor": cursor, **more})

    @pytest.mark.usefixtures("plant")
    @pytest.mark.parametrize(
        "cursor",
        [
            "x",
            "AAAA",
            "ん",
            "=" * 9,
            "A" * 200_000,
            base64.urlsafe_b64encode(zlib.compress(b"\0" * 90_000_000)).decode()[:250_000],
        ],
    )
    async def test_no_cursor_is_400(self, client: httpx.AsyncClient, cursor: str) -> None:
        response = await self.bad(client, cursor)
        assert response.status_code == 400 and response.json()["errors"][0]["pointer"] == "/cursor"

    @pytest.mark.usefixtures("plant")
    async def test_of_another_search(self, client: httpx.AsyncClient) -> None:
        following = (await page(client, "", 1))["next"]
        for more in ({"query": "軸"}, {"query": "軸受の点検", "filters": {"source": "x"}}):
            response = await client.post("/v1/search", json={"cursor": following, **more})
            assert response.status_code == 400 and "another search" in response.text
        response = await client.post("/v1/search", json={"query": "軸受の点検", "cursor": following, "offset": 1})
        assert response.json()["errors"][0]["pointer"] == "/offset"

    @pytest.mark.usefixtures("plant")
    async def test_too_old_or_of_another_version(self, client: httpx.AsyncClient) -> None:
        following = (await page(client, "", 1))["next"]
        raw = zlib.decompress(base64.urlsafe_b64decode(following + "=" * (-len(following) % 4)))
        cursor = msgspec.msgpack.decode(raw, type=paging.Cursor)
        for changes in ({"started": cursor.started - paging.LIFETIME_S - 5}, {"version": 99}):
            old = paging.encode(msgspec.structs.replace(cursor, **changes))
            response = await client.post("/v1/search", json={"query": "軸受の点検", "cursor": old})
            assert response.status_code == 410 and response.json()["type"] == "urn:shinsen:problem:cursor-expired"

    @pytest.mark.usefixtures("plant")
    async def test_an_invented_one_shows_nothing_hidden(
        self, client: httpx.AsyncClient, runtime: EmbeddedRuntime
    ) -> None:
        following = (await page(client, "", 1))["next"]
        raw = zlib.decompress(base64.urlsafe_b64decode(following + "=" * (-len(following) % 4)))
        cursor = msgspec.msgpack.decode(raw, type=paging.Cursor)
        async with runtime.live() as indexes:
            secret = (await runtime.state.manifests(indexes.generation, ["plant/reports/S1"]))["plant/reports/S1"]
        invented = msgspec.structs.replace(
            cursor, ahead=(paging.Ahead(secret.chunks[0].id, secret.document, 9.0), *cursor.ahead)
        )
        assert "S1" not in keys(await page(client, paging.encode(invented), 50))
        assert keys(await page(client, paging.encode(invented), 1, "legal")) == ["S1"]
