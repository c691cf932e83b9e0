"""Documents whose number stands in their key only, and numbers that are parts of others, through `POST /v1/search`."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.language.test_own_numbers import INDEXES, in_either_index, search

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]

_FILLING = "この文書は、関係する部署の確認を受けたうえで発行し、改める必要が生じたときは所管の部署が改める。" * 9
_MENTIONS = 20


def _long(beginning: str, *parts: str) -> str:
    return "\n\n".join([beginning, *(f"## {n} 部\n\n{part}{_FILLING}" for n, part in enumerate(parts, 1))])


def _documents() -> list[tuple[str, str, str, str]]:
    """Return collection, key, title and body."""
    fixed = ("所管は開発課とする。", "不具合の修正は認証である。", "既知の問題は印刷である。")
    torque = ("締付けトルクは22 N·mとする。", "点検周期は半年とする。")
    heads = [
        ("memos", f"m{n}", "控え", _long(f"昨日、P-1を見た。{n}", "作業の記録。", "締付けトルクを調べた。"))
        for n in range(_MENTIONS)
    ]
    return [
        ("releases", "v1.2", "リリースノート", _long(*fixed)),
        ("releases", "v1.2.3", "リリースノート", _long(*fixed)),
        ("files", "docs/2025/RL-7.md", "リリースノート", _long(*fixed)),
        ("files", "RL-8.md", "リリースノート", _long(*fixed)),
        ("machines", "x1", "F-401の隣の設備", _long("文書番号 F-40\n所管は設備課とする。", *torque)),
        ("machines", "x2", "台帳", _long("文書番号 P-2\n所管は設備課とする。", *torque)),
        *heads,
        ("orders", "WO-4711", "ブレーキ交換", "ブレーキを交換した。担当は保全課。"),
        ("orders", "WO-4712", "ブレーキ交換", "WO-4712のブレーキを交換した。担当は保全課。"),
        ("secret", "WO-4713", "ブレーキ交換", "ブレーキを交換した。担当は保全課。"),
        *((f"plant{n:02}", "E-7", "台帳", _long("所管は設備課とする。", *torque)) for n in range(12)),
    ]


def _events() -> list[dict[str, Any]]:
    return [
        {
            "source": "s",
            "collection": collection,
            "key": key,
            "op": "upsert",
            "position": 1,
            "record": {
                "title": title,
                "body": body,
                "acl": ["legal" if collection == "secret" else "all"],
                "updated_at": "2025-07-08T09:00:00+09:00",
            },
        }
        for collection, key, title, body in _documents()
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=INDEXES)
async def keyed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that holds the documents, their chunks in either index."""
    async with in_either_index(request, tmp_path_factory.mktemp("keys"), _events()) as opened:
        yield opened


async def _named(client: httpx.AsyncClient, text: str, **more: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = (await search(client, text, explain=True, **more))["explanation"]["named_by"]
    return found


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("v1.2の不具合の修正", "releases/v1.2"),
        ("v1.2.3の不具合の修正", "releases/v1.2.3"),
        ("RL-7の不具合の修正", "files/docs/2025/RL-7.md"),
        ("F-40の締付けトルク", "machines/x1"),
        ("WO-4711の担当", "orders/WO-4711"),
        ("ｗｏ－４７１１ ブレーキ交換", "orders/WO-4711"),
    ],
)
async def test_the_document_of_this_very_number_comes_first(keyed: httpx.AsyncClient, text: str, document: str) -> None:
    found = await search(keyed, text, explain=True)
    assert found["hits"][0]["document"]["key"] == f"s/{document}"
    assert list(found["explanation"]["named_by"].values()) == [[f"s/{document}"]]
    assert found["warnings"] == []


async def test_a_number_in_many_heads_takes_no_place_from_another(keyed: httpx.AsyncClient) -> None:
    found = await search(keyed, "P-1とP-2の締付けトルク", explain=True)
    assert found["explanation"]["named_by"] == {"p-2": ["s/machines/x2"]}
    assert "22 N·m" in found["hits"][0]["text"] and found["hits"][0]["document"]["key"] == "s/machines/x2"


@pytest.mark.parametrize("text", ["WO-4711", "WO-4711とは", "ＷＯ－４７１１", "WO-4711について教えて", "WO-4711の塗装"])
@pytest.mark.parametrize("more", [{}, {"rerank": False}, {"fusion": "rrf"}, {"alpha": 1}])
async def test_a_document_with_the_number_as_its_key_is_found_though_no_text_holds_what_is_asked(
    keyed: httpx.AsyncClient, text: str, more: dict[str, Any]
) -> None:
    found = await search(keyed, text, **more)
    parts = found["hits"][0]["parts"]
    assert found["hits"][0]["document"]["key"] == "s/orders/WO-4711"
    assert parts["named_identifier"] and not parts["exact_identifier"]
    assert found["warnings"] == []


@pytest.mark.parametrize("text", ["RL-8", "rl-8とは", "RL-8の塗装", "RL-8の不具合の修正"])
async def test_a_file_is_found_by_its_name(keyed: httpx.AsyncClient, text: str) -> None:
    found = await search(keyed, text)
    assert found["hits"][0]["document"]["key"] == "s/files/RL-8.md" and found["warnings"] == []


async def test_a_bare_number_that_a_text_holds_names_nothing(keyed: httpx.AsyncClient) -> None:
    assert await _named(keyed, "WO-4712") == {}
    assert await _named(keyed, "P-1") == {}


async def test_one_number_of_many_documents(keyed: httpx.AsyncClient) -> None:
    every = [f"s/plant{n:02}/E-7" for n in range(12)]
    for text in ("E-7の締付けトルク", "E-7"):
        assert await _named(keyed, text) == {"e-7": every[:8]}
    assert await _named(keyed, "E-7", filters={"collection": "plant11"}) == {"e-7": every[11:]}
    shown: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await search(keyed, "E-7", top_k=3, cursor=cursor)
        shown += [hit["document"]["key"] for hit in page["hits"]]
        cursor = page["next"]
    assert shown == every[:8]


@pytest.mark.parametrize("text", ["WO-4713", "WO-4713の担当"])
async def test_a_key_is_told_only_to_who_may_read_the_document(keyed: httpx.AsyncClient, text: str) -> None:
    body = {"query": text, "explain": True}
    known = (await keyed.post("/v1/search", json=body, headers={"x-shinsen-groups": "legal"})).json()
    assert known["hits"][0]["document"]["key"] == "s/secret/WO-4713"
    found = (await keyed.post("/v1/search", json=body, headers={"x-shinsen-groups": "all"})).json()
    assert found["explanation"]["named_by"] == {} and "secret" not in str(found)
    assert any("no text that you may see" in note for note in found["warnings"])
    none = await search(keyed, text, filters={"collection": "memos"}, explain=True)
    assert none["explanation"]["named_by"] == {}
