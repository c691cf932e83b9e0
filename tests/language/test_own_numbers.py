"""A document's number and words, through `POST /v1/search`: the very document's passage, not one of the same build."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from msgspec.structs import replace

from api.retrieval import naming
from ops.stack.server import Endpoint
from pipeline.backends.chunks_weaviate import WeaviateChunks
from pipeline.backends.chunks_weaviate_client import WeaviateAddress
from pipeline.embedded.runtime import EmbeddedRuntime
from tests.language.conftest import search_only
from tests.language.own_numbers import KINDS, Asked, events, questions

pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="module")]


INDEXES = ("sqlite", pytest.param("weaviate", marks=pytest.mark.stack))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=INDEXES)
async def numbered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that holds the documents with numbers of their own, their chunks in either index."""
    async with in_either_index(request, tmp_path_factory.mktemp("numbers"), events()) as opened:
        yield opened


@asynccontextmanager
async def in_either_index(
    request: pytest.FixtureRequest, folder: Path, events: list[dict[str, Any]]
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve these events, their chunks in the index that the fixture's parameter names."""
    served = search_only(folder, events)
    async with served as opened:
        if request.param == "sqlite":
            yield opened
            return
        async with in_weaviate(request.getfixturevalue("stack_server")("weaviate"), served.runtime):
            yield opened


@asynccontextmanager
async def in_weaviate(at: Endpoint, runtime: EmbeddedRuntime) -> AsyncIterator[None]:
    """Let searches read the same chunks from Weaviate."""
    index = WeaviateChunks(WeaviateAddress(at.url, f"{at.host}:{at.ports['grpc']}"), f"t{uuid.uuid4().hex[:12]}")
    async with runtime.live() as indexes:
        await index.stage([chunk async for chunk in indexes.chunks.scan()])
        moved = replace(indexes, chunks=index)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runtime, "live", lambda: nullcontext(moved))
            yield
    await index.drop()
    await index.close()


async def search(client: httpx.AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    response = await client.post("/v1/search", json={"query": text, "top_k": 10, **more})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def place(found: dict[str, Any], asked: Asked) -> int:
    """Return at which place the passage stands that answers, 99 where it is not there."""
    hits = enumerate(found["hits"], 1)
    return next((n for n, hit in hits if hit["document"]["key"] == asked.document and asked.tells in hit["text"]), 99)


async def test_the_passage_that_answers_is_among_the_first_three_and_nearly_always_first(
    numbered: httpx.AsyncClient,
) -> None:
    places = {one.question: place(await search(numbered, one.question), one) for one in questions()}
    assert len(places) >= 40
    assert {question: n for question, n in places.items() if n > 3} == {}
    assert sum(n == 1 for n in places.values()) >= 0.9 * len(places), places


async def test_other_documents_that_do_not_hold_the_number_stand_behind(numbered: httpx.AsyncClient) -> None:
    for one in questions():
        hits = (await search(numbered, one.question))["hits"]
        about = [hit["parts"]["exact_identifier"] or hit["parts"]["named_identifier"] for hit in hits]
        assert about == sorted(about, reverse=True), one.question


async def test_passages_of_documents_that_only_mention_it_are_not_lifted(numbered: httpx.AsyncClient) -> None:
    for one in questions():
        found = await search(numbered, one.question, explain=True)
        lifted = {hit["document"]["key"] for hit in found["hits"] if hit["parts"]["named_identifier"]}
        assert lifted == {one.document}, one.question
        assert list(found["explanation"]["named_by"].values()) == [[one.document]]


async def test_a_bare_number_finds_the_passages_that_hold_it(numbered: httpx.AsyncClient) -> None:
    for number in (number for kind in KINDS for number in kind.asked or kind.numbers):
        found = await search(numbered, number, explain=True)
        assert found["hits"][0]["parts"]["exact_identifier"], number
        assert not any(hit["parts"]["named_identifier"] for hit in found["hits"])
        assert found["explanation"]["named_by"] == {}


async def test_without_a_number_nothing_is_lifted(numbered: httpx.AsyncClient) -> None:
    found = await search(numbered, "減速機の締付けトルク", explain=True)
    assert found["explanation"]["named_by"] == {}
    assert {hit["document"]["key"].split("/")[1] for hit in found["hits"][:4]} == {"manuals"}


async def test_pages_go_on_in_the_same_order(numbered: httpx.AsyncClient) -> None:
    text = "MM-2025-0707 トルク"
    whole = [hit["chunk_id"] for hit in (await search(numbered, text))["hits"]]
    paged: list[str] = []
    parts: list[bool] = []
    cursor: str | None = ""
    while cursor is not None and len(paged) < 30:
        page = await search(numbered, text, top_k=1 if not paged else 5, cursor=cursor)
        paged += [hit["chunk_id"] for hit in page["hits"]]
        parts += [hit["parts"]["named_identifier"] for hit in page["hits"]]
        cursor = page["next"]
    assert len(paged) == len(set(paged)) >= 30 and paged[:10] == whole and parts[0] and not all(parts)
    assert [hit["chunk_id"] for hit in (await search(numbered, text, top_k=8, offset=2))["hits"]] == whole[2:]


@pytest.mark.parametrize("filters", [{"collection": "memos"}, {"document": "numbers/manuals/8401"}])
async def test_filters_hold(numbered: httpx.AsyncClient, filters: dict[str, str]) -> None:
    found = await search(numbered, "MM-2025-0707 トルク", filters=filters, explain=True)
    assert found["hits"] and found["explanation"]["named_by"] == {}
    for hit in found["hits"]:
        assert hit["document"]["key"].startswith(f"numbers/{filters.get('collection', 'manuals')}/")


@pytest.mark.parametrize(("number", "key"), [("SEC-77", "SEC-77"), ("SEC-78", "8499")])
async def test_nothing_is_told_of_documents_that_the_asker_may_not_read(
    numbered: httpx.AsyncClient, number: str, key: str
) -> None:
    body = {"query": f"{number}の交渉の経過", "explain": True}
    known = (await numbered.post("/v1/search", json=body, headers={"x-shinsen-groups": "legal"})).json()
    assert known["explanation"]["named_by"] == {number.lower(): [f"numbers/secret/{key}"]}
    found = (await numbered.post("/v1/search", json=body, headers={"x-shinsen-groups": "all"})).json()
    assert found["explanation"]["named_by"] == {} and number not in str(found["hits"])
    assert "secret" not in str(found) and any("no text that you may see" in note for note in found["warnings"])


async def test_past_its_time_only_passages_that_hold_the_number_go_first(
    numbered: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(naming, "_BUDGET_S", 0.0)
    found = await search(numbered, "MM-2025-0707 トルク")
    assert found["hits"][0]["parts"]["exact_identifier"]
    assert not any(hit["parts"]["named_identifier"] for hit in found["hits"])
    assert any("which documents are numbered mm-2025-0707" in note for note in found["warnings"])


async def test_answers_come_from_the_very_document(numbered: httpx.AsyncClient) -> None:
    lacking, wrong = [], []
    for one in (asked := list(questions())):
        answered = (await numbered.post("/v1/query", json={"question": one.question, "top_k": 3})).json()
        if not any(p["document"]["key"] == one.document and one.tells in p["text"] for p in answered["evidence"]):
            lacking.append(one.question)
        cited = {span["document"] for claim in answered["answer"]["claims"][:1] for span in claim["spans"]}
        if cited != {one.document}:
            wrong.append(one.question)
    assert lacking == []
    assert len(wrong) <= 0.1 * len(asked), wrong
