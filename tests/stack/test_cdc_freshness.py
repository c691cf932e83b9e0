"""Reading one's own write by PostgreSQL's own position, and a restored database; the real chain."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import psycopg
import pytest

from ops.stack.server import Endpoint
from tests.stack.cdc import Chain, chain
from tests.stack.runtime_api import serving

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

TABLES = {
    "orders": "id int PRIMARY KEY, title text, body text",
    "parts": "id int PRIMARY KEY, title text, body text",
    "staff": "id int PRIMARY KEY, title text, body text",
}
FIRST = [f"INSERT INTO {name} VALUES (0, '{name}', '点検の記録。')" for name in TABLES]


@pytest.fixture(scope="module")
def world(stack_server: Callable[[str], Endpoint], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with chain(stack_server, tmp_path_factory.mktemp("cdc"), TABLES, *FIRST) as opened:
        yield opened


@pytest.fixture
async def client(world: Chain) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(world.settings) as (_, client):
        yield client


async def test_a_writer_reads_its_writes_under_load(world: Chain, client: httpx.AsyncClient) -> None:
    """Several tables and partitions, other writers all the while: each question at once after its write."""
    await world.reached(client, world.erp.execute("SELECT 1"))
    stop = asyncio.Event()
    load = asyncio.create_task(asyncio.to_thread(_write_on, world, stop))
    waited: list[float] = []
    try:
        for number in range(12):
            table = list(TABLES)[number % 3]
            values = f"({1000 + number}, '注文{number}', '受注番号ZZ-{number}の点検。')"
            position = await asyncio.to_thread(world.erp.execute, f"INSERT INTO {table} VALUES {values}")
            began = time.monotonic()
            question = {"query": f"ZZ-{number}", "min_freshness": {"source": world.erp.source, "position": position}}
            answer = await client.post("/v1/search", json=question | {"wait": "60s"})
            waited.append(time.monotonic() - began)
            assert answer.status_code == 200, f"{answer.text}\n{world.stack.tail()}"
            keys = [hit["document"]["key"] for hit in answer.json()["hits"]]
            assert f"{world.erp.source}/{table}/{1000 + number}" in keys
    finally:
        stop.set()
        written = await load
    print(
        f"own write read after {sorted(waited)[6]:.2f} s (p50), {max(waited):.2f} s (max), {written} others meanwhile"
    )


def _write_on(world: Chain, stop: asyncio.Event) -> int:
    number = 0
    with psycopg.connect(world.erp.url, autocommit=True) as link:
        while not stop.is_set():
            for table in TABLES:
                number += 1
                row = (number % 7 + 1, f"負荷{number}", f"負荷{number}の点検。")
                link.execute(
                    f"INSERT INTO {table} VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET"
                    " title = excluded.title, body = excluded.body",
                    row,
                )
            time.sleep(0.2)
    return number


async def test_an_idle_database_moves_on(world: Chain, client: httpx.AsyncClient) -> None:
    position = world.erp.execute("CREATE TABLE IF NOT EXISTS elsewhere (id int)", "INSERT INTO elsewhere VALUES (1)")
    await world.reached(client, position)


async def test_positions_that_cannot_be_reached(world: Chain, client: httpx.AsyncClient) -> None:
    async def ask(source: str, position: str) -> httpx.Response:
        freshness = {"source": source, "position": position}
        return await client.post("/v1/search", json={"query": "点検", "min_freshness": freshness, "wait": "1s"})

    ahead = await ask(world.erp.source, "FFFF/0")
    assert ahead.status_code == 504 and "has come to" in ahead.json()["detail"]
    unknown = await ask("nobody", "0/1")
    assert unknown.status_code == 504 and "SHINSEN_SOURCE_TOPICS" in unknown.json()["detail"]
    assert (await ask(world.erp.source, "soon")).status_code == 400


async def test_a_restored_database(
    world: Chain, client: httpx.AsyncClient, breakable_server: Callable[[str], Endpoint]
) -> None:
    """Restored into a new server, whose log is behind: its positions begin below those that were seen."""
    erp, restored = world.erp, await asyncio.to_thread(breakable_server, "postgres")
    # 16 MB each, so that the new server stays behind, whatever ran here before.
    position = erp.execute(*("CREATE TABLE IF NOT EXISTS filler (id int)", "SELECT pg_switch_wal()") * 4)
    rows = "INSERT INTO parts VALUES (50, '古い名', '古い点検。'), (51, '失われる', '失われる点検。')"
    position = erp.execute("SELECT 1", rows)
    await world.reached(client, position)
    await asyncio.to_thread(erp.stop_connector)
    try:
        erp.move_to(restored)
        erp.execute(*(f"CREATE TABLE {name} ({columns})" for name, columns in TABLES.items()), *FIRST)
        erp.execute("INSERT INTO parts VALUES (50, '復元した名', '復元後の点検。')")
        await asyncio.to_thread(erp.connect)
        erp.execute(*(f"UPDATE parts SET body = '復元後の点検{n}。' WHERE id = 50" for n in range(20)))
        await _warned(client, erp.source)
        assert (await world.columns(client, "parts", "50") or {})["title"] == "古い名", "the old history stands"

        await asyncio.to_thread(erp.stop_connector)
        begun = await client.post(f"/v1/sources/{erp.source}/epochs")
        assert begun.status_code == 200 and begun.json()["epoch"] == 1, begun.text
        await asyncio.to_thread(erp.connect)
        await world.reached(client, erp.execute("UPDATE parts SET body = '新しい点検。' WHERE id = 50"))
        now = await world.columns(client, "parts", "50")
        assert now == {"id": 50, "title": "復元した名", "body": "新しい点検。"}
        assert await world.document(client, "parts", "51") is not None, "nobody said yet that it is gone"
        forgotten = await client.post(f"/v1/sources/{erp.source}/forget-older")
        assert forgotten.json()["collections"] == sorted(TABLES), forgotten.text
        await world.stack.settled(seconds=90)
        assert await world.document(client, "parts", "51") is None
        assert await world.columns(client, "parts", "50") == now
        assert await _warnings(client, erp.source) == []
    finally:
        await asyncio.to_thread(erp.leave)


async def _warnings(client: httpx.AsyncClient, source: str) -> list[str]:
    return [text for text in (await client.get("/v1/sources")).json()["warnings"] if source in text]


async def _warned(client: httpx.AsyncClient, source: str) -> None:
    end = time.monotonic() + 60
    while not await _warnings(client, source):
        assert time.monotonic() < end, (await client.get("/v1/sources")).text
        await asyncio.sleep(0.2)
