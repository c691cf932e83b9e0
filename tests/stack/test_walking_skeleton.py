"""One create, one update, one delete and poison through the real stack, and kill -9 in between."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from ops.stack import servers
from ops.stack.server import Endpoint
from pipeline.digest import digest
from pipeline.ports.chunk_index import ChunkFilter, LexicalQuery
from pipeline.settings import Settings
from pipeline.stack_wiring import StackStores, open_stack_stores
from pipeline.wiring import open_embedded
from schemas.change_event import RawEvent
from schemas.knowledge import EntityRef
from schemas.outcome import Outcome
from tests.stack.worker import Message, Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults]

REPORT, MANUAL, MEMO = "dms/reports/AR-1", "dms/reports/SM-210", "dms/reports/MM-7"


def native(document: str, position: int, title: str = "", body: str = "", op: str = "upsert", **more: Any) -> Message:
    source, collection, key = document.split("/", 2)
    event = {"source": source, "collection": collection, "key": key, "op": op, "position": position}
    if op == "upsert":
        event["record"] = {"title": title, "body": body, **more}
    return document, json.dumps(event, ensure_ascii=False).encode()


BEFORE: list[Message] = [
    native(REPORT, 1, "事故報告書", "フォークリフト F-17 が通路で荷崩れを起こした。原因は荷重超過。"),
    native(MANUAL, 1, "安全マニュアル", "フォークリフトの最大荷重を守ること。"),
    native(MEMO, 1, "朝会メモ", "F-17 の点検を今週行う。", acl=["safety"]),
    (REPORT, b"not json"),
]
AFTER: list[Message] = [
    native(REPORT, 2, "事故報告書", "フォークリフト F-17 の荷崩れ。原因はブレーキの摩耗。"),
    (REPORT, b"\xff\xfe"),
    (MANUAL, None),
    native(MEMO, 3, op="delete"),
    native(MEMO, 2, "朝会メモ", "遅れて届いた F-17 の知らせ。"),
    native(REPORT, 2, "事故報告書", "フォークリフト F-17 の荷崩れ。原因はブレーキの摩耗。"),
]


@pytest.fixture(params=["fuseki", "oxigraph"])
async def stack(
    request: pytest.FixtureRequest, stack_server: Callable[[str], Endpoint], tmp_path: Path
) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, request.param, tmp_path)
    yield stack
    stack.end()
    await stack.remove()


async def embedded_digest(folder: Path, messages: Sequence[Message]) -> dict[str, str]:
    """The digest of the embedded profile after the same events, tombstones aside."""
    async with open_embedded(Settings(data=folder, analyzer="stub", embedder="stub")) as runtime:
        await runtime.submit([RawEvent(value=value, key=key.encode()) for key, value in messages])
        return await runtime.digest()


async def words(stores: StackStores, *terms: str) -> set[str]:
    hits = await stores.chunks.lexical(LexicalQuery(terms), ChunkFilter(), 20)
    return {hit.document for hit in hits}


async def test_a_worker_refuses_to_start_without_its_topics(stack: Stack) -> None:
    worker = stack.start()
    assert await asyncio.to_thread(worker.wait, 60) == 2
    assert f"no topic {stack.topics.events.name}" in stack.tail()
    assert "python -m pipeline.agents create-topics" in stack.tail()


async def test_events_go_through_the_stack_and_nothing_is_lost_by_kills(stack: Stack, tmp_path: Path) -> None:
    for _ in range(2):  # again is no error
        assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    worker = stack.start()
    await stack.publish(BEFORE)
    await stack.settled(worker)
    async with open_stack_stores(stack.settings, {}) as stores:
        assert await words(stores, "f-17") == {REPORT, MEMO}
        assert {m.stage async for m in stores.state.scan_manifests(stores.generation)} == {"full"}

        await kill(worker)
        await stack.publish(AFTER)
        await kill_when(stack, stores, reconciled, stub_delay=5)
        assert await stack.lag("reconcile") == len(AFTER), "killed before it acknowledged"
        await kill_when(stack, stores, visible)
        worker = stack.start()
        await stack.settled(worker)
        await check_stores(stores)
        await check_topics(stack, stores)
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait, 60) == 0, stack.tail()
        here = await digest(stores.state, stores.generation, stores.chunks, stores.graph)
    assert here == await embedded_digest(tmp_path / "embedded", [*BEFORE, *AFTER])


async def kill(worker: "subprocess.Popen[bytes]") -> None:
    worker.send_signal(signal.SIGKILL)
    await asyncio.to_thread(worker.wait, 30)


async def reconciled(stores: StackStores) -> bool:
    return (await stores.state.records([REPORT]))[REPORT].version == "2"


async def visible(stores: StackStores) -> bool:
    return (await stores.state.manifests(stores.generation, [REPORT]))[REPORT].version == "2"


async def kill_when(
    stack: Stack, stores: StackStores, come: Callable[[StackStores], Awaitable[bool]], **changed: object
) -> None:
    """Start a worker and kill it as soon as it has come so far."""
    worker = stack.start(**changed)
    end = asyncio.get_running_loop().time() + 60
    while not await come(stores):
        assert worker.poll() is None and asyncio.get_running_loop().time() < end, stack.tail()
        await asyncio.sleep(0.01)
    await kill(worker)


async def check_stores(stores: StackStores) -> None:
    chunks = [chunk async for chunk in stores.chunks.scan()]
    assert [(c.document, "ブレーキ" in c.text) for c in chunks if c.document == REPORT] == [(REPORT, True)]
    assert {c.document for c in chunks} == {REPORT, MANUAL}
    assert all(c.vector is not None for c in chunks)
    manifests = await stores.state.manifests(stores.generation, [REPORT, MANUAL, MEMO])
    assert {name: m.op for name, m in manifests.items()} == {REPORT: "upsert", MANUAL: "upsert", MEMO: "delete"}
    assert [ref.id for ref in manifests[REPORT].chunks] == [c.id for c in chunks if c.document == REPORT]
    facts = await stores.graph.facts_about([EntityRef("id", "f-17", "F-17")], None, 99)
    assert {fact.document for fact in facts} == {REPORT}
    assert {fact.facts_version for fact in facts} == {manifests[REPORT].facts_version}
    assert await words(stores, "f-17") == {REPORT}
    letters = await stores.state.dead_letters()
    assert sorted(letter.payload for letter in letters) == [b"not json", b"\xff\xfe"]


async def check_topics(stack: Stack, stores: StackStores) -> None:
    outcomes: dict[str, set[str]] = {}
    for key, value, _ in await stack.read(stack.topics.outcomes.name, stack.settings.partitions):
        outcome = msgspec.json.decode(value or b"", type=Outcome)
        assert (key or b"").decode() == outcome.document
        outcomes.setdefault(outcome.event, set()).add(outcome.outcome)
    assert len(outcomes) == len(BEFORE) + len(AFTER)
    assert all(len(names) == 1 for names in outcomes.values()), "an event ends in exactly one way"
    ends = sorted(name for names in outcomes.values() for name in names)
    assert ends == sorted(["applied"] * 5 + ["dead_letter"] * 2 + ["duplicate"] * 2 + ["superseded"])
    known = await stores.state.outcomes(list(outcomes))
    assert {event: {name} for event, name in known.items()} == outcomes
    dead = await stack.read(stack.topics.dead_letters.name, 1)
    assert {value for _, value, _ in dead} == {b"not json", b"\xff\xfe"}
    for key, _, headers in dead:
        assert key == REPORT.encode()
        assert headers["shinsen-event"].startswith(stack.topics.events.name.encode())
        assert headers["shinsen-code"] and headers["shinsen-reason"] and headers["shinsen-topic"]


async def test_what_no_waiting_mends_ends_the_process_and_is_delivered_again(stack: Stack) -> None:
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    worker = stack.start()
    await stack.publish(BEFORE[:1])
    await stack.settled(worker)
    with psycopg.connect(stack.settings.postgres, autocommit=True) as connection:
        connection.execute("ALTER TABLE outcomes RENAME TO hidden")  # a bug, as far as the worker can see
        await stack.publish(BEFORE[1:2])
        assert await asyncio.to_thread(worker.wait, 60) not in (0, 2), stack.tail()
        connection.execute("ALTER TABLE hidden RENAME TO outcomes")
    assert await stack.lag("apply") >= 1  # and perhaps the sweep, which asked for the same document again
    await stack.settled(stack.start())
    async with open_stack_stores(stack.settings, {}) as stores:
        assert await words(stores, "フォ") == {REPORT, MANUAL}


@pytest.mark.parametrize("sparql", ["fuseki", "oxigraph"])
async def test_a_store_that_is_down_is_waited_for(
    sparql: str,
    stack_server: Callable[[str], Endpoint],
    breakable_server: Callable[[str], Endpoint],
    tmp_path: Path,
) -> None:
    stack = Stack(lambda name: (breakable_server if name == sparql else stack_server)(name), sparql, tmp_path)
    try:
        assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
        worker = stack.start()
        await stack.publish(BEFORE[:1])
        await stack.settled(worker)
        down = breakable_server(sparql)
        await asyncio.to_thread(servers.kill, down.name, down.home.parent)
        await stack.publish(BEFORE[1:])
        await asyncio.sleep(8)
        assert worker.poll() is None
        assert await stack.lag("apply") >= 2, "nothing is acknowledged that the graph has not"  # the sweep may ask, too
        await asyncio.to_thread(servers.start, [down.name], down.home.parent)
        await stack.settled(worker)
        assert "check that it runs" in stack.log.read_text()
        async with open_stack_stores(stack.settings, {}) as stores:
            facts = [fact async for fact in stores.graph.scan()]
        assert {fact.document for fact in facts} == {REPORT, MANUAL, MEMO}
    finally:
        stack.end()
        await stack.remove()
