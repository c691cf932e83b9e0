"""Poison among good records on one partition: each good one is indexed, each bad one put aside with its reason."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ops.stack.ports import choose
from ops.stack.server import Endpoint
from pipeline.ports.chunk_index import ChunkFilter, LexicalQuery
from pipeline.stack_wiring import StackStores, open_stack_stores
from tests.differential.running import MAPPINGS
from tests.faults.contents import letters
from tests.faults.ends import check_dead_letters, check_outcomes
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(400)]
KEY = b"dms/reports/r1"
MAX_EVENT = 1 << 18
GOOD = 14


def native(key: str, body: Any, op: str = "upsert", position: int = 1) -> bytes:
    event = {"source": "dms", "collection": "reports", "key": key, "op": op, "position": position}
    return _bytes(event | ({"record": {"title": f"報告 {key}", "body": body}} if body is not None else {}))


def row(table: str, **columns: Any) -> bytes:
    source = {"connector": "postgresql", "name": "erp", "schema": "public", "table": table, "lsn": 10, "ts_ms": 1}
    return _bytes({"op": "u", "before": None, "after": columns, "source": source})


def _bytes(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


LARGE = "フォークリフトの点検記録。" * 1_600  # 60 KB
POISON: dict[str, bytes] = {
    "not json": b"not json",
    "null": b"null",
    "no UTF-8": b"\xff\xfe",
    "empty": b"",
    "Avro": b"\x00\x00\x00\x00\x07\x02\x0ahello",
    "unknown op": native("x1", "中身", op="merge"),
    "unknown op of Debezium": row("equipment", equipment_no="X-1").replace(b'"op": "u"', b'"op": "z"'),
    "a lone surrogate": b'{"source":"dms","collection":"reports","key":"x2","position":1,"record":{"title":"\\ud800"}}',
    "deep": b"[" * 100_000,
    "too large": native("x3", "あ" * MAX_EVENT),
    "a row without its key": row("stock", item="B-1", name="ブレーキシュー", shelf="棚 12"),
    "a row without a column": row("equipment", equipment_no="Q-11", kind="天井クレーン"),
}
MENDED = {"a row without its key": "erp/stock/B-1", "a row without a column": "erp/equipment/Q-11"}
STOCK = """source: erp
collection: stock
key: [code]
position: {rule: lsn}
title: "{item} {name}"
body: ["{name}は{shelf}にある。"]
"""


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    mappings = tmp_path / "mappings"
    shutil.copytree(MAPPINGS, mappings)
    (mappings / "stock.yaml").write_text(STOCK)
    stack.settings = stack.settings.model_copy(update={"mappings": mappings, "max_event": MAX_EVENT})
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


async def publish(stack: Stack, values: list[bytes | None]) -> None:
    """Send all to one partition; some with headers that no text decodes."""
    async with AIOKafkaProducer(bootstrap_servers=stack.settings.kafka, acks="all", max_request_size=2 << 20) as out:
        for n, value in enumerate(values):
            headers = [("trace", b"\xff\x00"), ("ce_type", b"\xfe")][: n % 2]
            await out.send_and_wait(stack.topics.events.name, value, key=KEY, partition=0, headers=headers)


async def found(stores: StackStores, *terms: str) -> set[str]:
    hits = await stores.chunks.lexical(LexicalQuery(terms), ChunkFilter(), 100)
    return {hit.document for hit in hits}


async def test_poison_is_put_aside_and_everything_else_is_indexed(stack: Stack) -> None:
    values: list[bytes | None] = []
    for n, poison in enumerate(POISON.values()):
        values += [native(f"g{n}", f"良い記録 GD-{n} です。"), poison]
    values += [None, native("large", LARGE), native("g12", "良い記録"), None, native("g13", "良い記録")]
    worker = stack.start()
    await publish(stack, values)
    await stack.settled(worker)
    assert await check_outcomes_of(stack, values) == len(values)
    async with open_stack_stores(stack.settings, {}) as stores:
        manifests = [m async for m in stores.state.scan_manifests(stores.generation) if m.op == "upsert"]
        assert {m.document for m in manifests} == {"dms/reports/large", *(f"dms/reports/g{n}" for n in range(GOOD))}
        large = next(m for m in manifests if m.document == "dms/reports/large")
        assert large.chunks[-1].end == len(LARGE) and len(large.chunks) > 20
        await check_dead_letters(stack, stores)
        assert sorted([letter.payload async for letter in letters(stores.state) if letter.stage == "decode"]) == sorted(
            value for name, value in POISON.items() if name != "a row without a column"
        )
        await mend(stack, stores, worker)


async def check_outcomes_of(stack: Stack, values: list[bytes | None]) -> int:
    async with open_stack_stores(stack.settings, {}) as stores:
        number = await check_outcomes(stack, stores)
        known = await stores.state.outcomes([f"{stack.topics.events.name}-0-{n}" for n in range(len(values))])
    for n, value in enumerate(values):
        wanted = "dead_letter" if value in POISON.values() else "applied" if value is not None else "duplicate"
        assert known[f"{stack.topics.events.name}-0-{n}"] == wanted, (n, (value or b"")[:80])
    return number


async def mend(stack: Stack, stores: StackStores, worker: "subprocess.Popen[bytes]") -> None:
    """Put the mappings right, start everything anew, and let the command line try again."""
    folder = stack.settings.mappings
    assert folder is not None
    (folder / "stock.yaml").write_text(STOCK.replace("[code]", "[item]"))
    mended = (folder / "equipment.yaml").read_text().replace("{name}", "").replace("labels: [name]", "labels: [kind]")
    (folder / "equipment.yaml").write_text(mended)
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, 60) == 0, stack.tail()
    worker = stack.start()
    port = choose(["http"], ())["http"]
    api = shinsen(stack, "run", "--profile", "stack", "--port", str(port))
    try:
        url = f"http://127.0.0.1:{port}"
        await answering(stack, url, api)
        retry = shinsen(stack, "dlq", "retry", "--all", "--url", url)
        assert await asyncio.to_thread(retry.wait, 120) == 5, f"most are refused again\n{stack.tail()}"
        await stack.settled(worker)
    finally:
        api.terminate()
        await asyncio.to_thread(api.wait, 60)
    left = [letter async for letter in letters(stores.state)]
    assert len(left) == len(POISON) - len(MENDED), str([(one.code, one.stage, one.reason, one.event) for one in left])
    assert await found(stores, "ブ") >= {"erp/stock/B-1"} or await found(stores, "b-1") == {"erp/stock/B-1"}
    manifests = await stores.state.manifests(stores.generation, list(MENDED.values()))
    assert {name: m.op for name, m in manifests.items()} == dict.fromkeys(MENDED.values(), "upsert")
    names = list(POISON)
    events = [f"{stack.topics.events.name}-0-{2 * names.index(name) + 1}" for name in MENDED]
    assert await stores.state.outcomes(events) == dict.fromkeys(events, "applied")


def shinsen(stack: Stack, *arguments: str) -> "subprocess.Popen[bytes]":
    """Start the command line with the stack's settings, its output appended to the log."""
    env = {f"SHINSEN_{k.upper()}": str(v) for k, v in stack.settings.model_dump(exclude_defaults=True).items()}
    with stack.log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "ops.cli", *arguments], env={**os.environ, **env}, stdout=out, stderr=out
        )


async def answering(stack: Stack, url: str, api: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        assert api.poll() is None, stack.tail()
        status = shinsen(stack, "dlq", "list", "--url", url)
        if await asyncio.to_thread(status.wait, 60) in (0, 5):
            return
        await asyncio.sleep(0.3)
    pytest.fail(f"the API does not answer:\n{stack.tail()}")
