"""What is removed is gone from every store, and nothing else; what is narrowed is hidden from its commit on."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from ops.stack.server import Endpoint
from pipeline.ports.chunk_index import ChunkFilter, LexicalQuery
from pipeline.stack_wiring import StackStores, open_stack_stores
from tests.stack.runtime_api import serving
from tests.stack.worker import Message, Stack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
MANY = 10_500
"""Weaviate deletes and pages at most 10,000 at once."""
SECRET = "dms/reports/secret"


def native(key: str, body: str | None, position: int = 1, **more: Any) -> Message:
    event = {"source": "dms", "collection": "reports", "key": key, "op": "upsert" if body else "delete"}
    record = {"record": {"title": f"報告 {key}", "body": body, **more}} if body else {}
    return f"dms/reports/{key}", json.dumps(event | {"position": position} | record, ensure_ascii=False).encode()


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    stack.settings = stack.settings.model_copy(update={"max_chunks": 20_000})
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


async def held(stores: StackStores) -> tuple[dict[str, int], set[str], set[str]]:
    """Return what the stores hold: chunks by document, documents of facts, documents with a visible version."""
    chunks: dict[str, int] = {}
    async for chunk in stores.chunks.scan():
        chunks[chunk.document] = chunks.get(chunk.document, 0) + 1
    facts = {fact.document async for fact in stores.graph.scan()}
    return chunks, facts, {m.document async for m in stores.state.scan_manifests(stores.generation) if m.op == "upsert"}


async def test_a_document_of_more_than_ten_thousand_chunks_goes_in_one_event(stack: Stack) -> None:
    body = "\n".join(f"# {n}\n\n" + ("機械の記録。" if n % 7 else f"機械 HG-{n} の記録。") for n in range(MANY))
    worker = stack.start()
    await stack.publish([native("huge", body), native("small", "機械 HG-7 の記録。")])
    await stack.settled(worker, seconds=300)
    async with open_stack_stores(stack.settings, {}) as stores:
        chunks, facts, visible = await held(stores)
        assert chunks == {"dms/reports/huge": MANY, "dms/reports/small": 1}, stack.tail()
        assert visible == facts == set(chunks)
        await stack.publish([native("huge", None, 2)])
        await stack.settled(worker, seconds=300)
        assert await held(stores) == ({"dms/reports/small": 1}, {"dms/reports/small"}, {"dms/reports/small"})
        left = await stores.graph.triples()
        assert 0 < len(left) < 10 and "huge" not in str(left)
        hits = await stores.chunks.lexical(LexicalQuery(("hg-7",)), ChunkFilter(), 20)
        assert {hit.document for hit in hits} == {"dms/reports/small"}


async def test_deleting_an_id_leaves_those_that_look_like_it(stack: Stack) -> None:
    keys = ["1-1", "1-12", "2-1", "1", "1-1/1", "１-1", "1-1 ", "%31-1"]
    worker = stack.start()
    await stack.publish([native(key, f"機械 {n} 号の記録。") for n, key in enumerate(keys)])
    await stack.settled(worker)
    async with open_stack_stores(stack.settings, {}) as stores:
        before, *_ = await held(stores)
        assert before == dict.fromkeys((f"dms/reports/{key}" for key in keys), 1)
        await stack.publish([native("1-1", None, 2)])
        await stack.settled(worker)
        left = {f"dms/reports/{key}" for key in keys[1:]}
        assert await held(stores) == (dict.fromkeys(left, 1), left, left)


async def test_a_narrowed_document_is_hidden_from_its_commit_on(stack: Stack) -> None:
    """Even while the indexes hold what they held before: the worker is killed as soon as it has committed."""
    body = "フォークリフト F-17 の賃金改定を検討する。\n" + "\n".join(f"# {n}\n\n改定案 {n}。" for n in range(300))
    worker = stack.start()
    await stack.publish([native("secret", body, acl=["all-staff"]), native("open", "F-17 の点検。", acl=["all-staff"])])
    await stack.settled(worker)
    async with open_stack_stores(stack.settings, {}) as stores, serving(stack.settings) as (_, client):
        assert await shows(client, "all-staff") and await shows(client, "hr") is False
        await stack.publish([native("secret", body, 2, acl=["hr"])])
        killed = asyncio.create_task(kill_at_commit(stores, worker))
        seen = hidden = 0
        while hidden < 20:
            narrow = (await stores.state.manifests(stores.generation, [SECRET]))[SECRET].version == "2"
            shown = await shows(client, "all-staff")
            assert not (narrow and shown), "shown to those who may no longer read it"
            seen, hidden = seen + shown, hidden + narrow
            assert seen < 3_000, stack.tail()
        await killed
        wide = {c.access_class async for c in stores.chunks.scan() if c.document == SECRET}
        print(f"{seen} looks before the commit, {hidden} after it, over chunks of {len(wide)} access classes")
        await stack.settled(stack.start())
        assert await shows(client, "hr") and await shows(client, "all-staff") is False
        assert len({c.access_class async for c in stores.chunks.scan() if c.document == SECRET}) == 1
        assert len({fact.access_class for fact in await stores.graph.facts_of([SECRET])}) == 1


async def kill_at_commit(stores: StackStores, worker: "subprocess.Popen[bytes]") -> None:
    async with asyncio.timeout(120):
        while (await stores.state.manifests(stores.generation, [SECRET]))[SECRET].version != "2":  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.005)
    worker.send_signal(signal.SIGKILL)


async def shows(client: httpx.AsyncClient, group: str) -> bool:
    """Whether anything at all shows the secret document to a group; whatever shows it, everything must."""
    headers = {"X-Shinsen-Groups": group}
    search, question, document = await asyncio.gather(
        client.post("/v1/search", json={"query": "賃金改定", "top_k": 10}, headers=headers),
        client.post("/v1/query", json={"question": "F-17の賃金改定は。", "source": "all"}, headers=headers),
        client.get(f"/v1/documents/{SECRET}", headers=headers),
    )
    assert (search.status_code, question.status_code) == (200, 200), (search.text, question.text)
    hit = SECRET in {hit["document"]["key"] for hit in search.json()["hits"]}
    evidence = SECRET in {(e.get("document") or {}).get("key") for e in question.json()["evidence"]}
    return hit or evidence or document.status_code == 200
