"""What error messages, odd keys and odd headers give away or hide."""

from typing import Any

import httpx
import pytest

from tests.api.conftest import Load
from tests.api.plant import event, machine, report


@pytest.mark.parametrize("path", ["/v1/query", "/v1/search"])
async def test_a_dead_letter_quotes_nothing_to_those_who_are_no_operators(
    client: httpx.AsyncClient, load: Load, path: str
) -> None:
    token = await load([machine("Q-42", price="極秘価格", acl=["accounting"])])
    body = {"question" if path == "/v1/query" else "query": "価格", "min_freshness": token}
    asked = await client.post(path, json=body, headers={"X-Shinsen-Groups": "staff"})
    assert asked.status_code == 409 and asked.json()["outcome"] == "dead_letter"
    assert "極秘価格" not in asked.text and "price" not in asked.text
    assert "極秘価格" in (await client.post(path, json=body)).text


KEYS = [
    "https://wiki.example/a//b?x=1#y",
    "/lead",
    "trail/",
    "a//b",
    "a%2Fb",
    "100%",
    "..",
    "日本語/鍵/",
    "a b+c",
]


@pytest.mark.parametrize("key", KEYS)
async def test_a_document_is_found_under_any_key(client: httpx.AsyncClient, load: Load, key: str) -> None:
    await load([report(key, "本文。"), report(key.replace("/", "") or "x", "別の文書。")])
    name = "".join(f"%{byte:02X}" for byte in key.encode())
    found = await client.get("/v1/documents/plant/reports/" + name)
    assert found.status_code == 200 and found.json()["document"]["key"] == f"plant/reports/{key}"


async def test_groups_may_be_japanese(client: httpx.AsyncClient, load: Load) -> None:
    await load([event("reports", "J1", 1, {"title": "人事", "body": "人事だけが読む。", "acl": ["人事部"]})])

    async def status(groups: bytes) -> int:
        response = await client.get("/v1/documents/plant/reports/J1", headers=[(b"x-shinsen-groups", groups)])
        return response.status_code

    assert await status("staff, 人事部".encode()) == 200
    assert await status("総務部".encode()) == 404
    assert await status(b"\xff\xfe") == 400


async def test_a_body_over_the_limit_hears_the_limit(client: httpx.AsyncClient) -> None:
    async def endless() -> Any:
        for _ in range(8):
            yield b"x" * 65_536

    response = await client.post("/v1/events", content=endless(), headers={"content-type": "application/json"})
    assert response.status_code == 413 and "400000 bytes" in response.json()["detail"]
