"""Rows in PostgreSQL become documents, through Debezium, Kafka and a worker, and are read back over the API."""

import asyncio
import base64
import json
import os
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import psycopg
import pytest

from ops.connector import slot_name
from ops.stack.server import Endpoint
from tests.stack.cdc import Chain, chain, until
from tests.stack.runtime_api import serving

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

TABLES = {
    "machines": "id text PRIMARY KEY, title text, body text",
    "notes": "id int PRIMARY KEY, title text, body text",
    "types": """id int PRIMARY KEY, title text, body text, price numeric(12,2), free numeric, day date, at timestamp,
        at3 timestamp(3), atz timestamptz, until date, raw bytea, tags text[], nums numeric(8,2)[], doc jsonb""",
    "large": "id int PRIMARY KEY, title text, body text, state text",
    "old": "id int PRIMARY KEY, title text, body text",
}
FIRST = [
    *(f"INSERT INTO {name} (id, title, body) VALUES (0, '{name}', '点検の記録。')" for name in TABLES),
    "INSERT INTO machines VALUES ('M-1', '旋盤', '旋盤の点検。'), ('M/2', 'フライス盤', 'フライス盤の点検。')",
    "INSERT INTO old SELECT n, '台帳' || n, '古い記録の点検。' FROM generate_series(1, 60) n",
]


@pytest.fixture(scope="module")
def world(stack_server: Callable[[str], Endpoint], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Rows that were there before the connector, and all tables that the tests write."""
    small = {"incremental.snapshot.chunk.size": "20"}  # several windows
    with chain(stack_server, tmp_path_factory.mktemp("cdc"), TABLES, *FIRST, **small) as opened:
        yield opened


@pytest.fixture
async def client(world: Chain) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(world.settings) as (_, client):
        yield client


async def test_the_rows_of_before_are_there(world: Chain, client: httpx.AsyncClient) -> None:
    found = await world.reached(client, world.erp.execute("SELECT 1"))
    assert found["total"] >= 5
    machine = await world.document(client, "machines", "M-1")
    assert machine is not None
    assert (machine["document"]["title"], machine["body"]) == ("旋盤", "旋盤の点検。")
    assert await world.columns(client, "old", "60") == {"id": 60, "title": "台帳60", "body": "古い記録の点検。"}


async def test_insert_update_delete(world: Chain, client: httpx.AsyncClient) -> None:
    erp = world.erp
    await world.reached(
        client, erp.execute("INSERT INTO notes VALUES (1, '朝会', 'ポンプの点検。'), (2, '夕会', '配管。')")
    )
    assert await world.columns(client, "notes", "1") == {"id": 1, "title": "朝会", "body": "ポンプの点検。"}
    await world.reached(client, erp.execute("UPDATE notes SET body = 'ポンプを交換した。' WHERE id = 1"))
    assert (await world.document(client, "notes", "1") or {})["body"] == "ポンプを交換した。"
    await world.reached(client, erp.execute("DELETE FROM notes WHERE id = 1"))
    assert await world.document(client, "notes", "1") is None
    assert await world.document(client, "notes", "2") is not None
    assert (await client.get("/v1/dead-letters")).json()["dead_letters"] == [], "the tombstone is no poison"


async def test_a_primary_key_changes(world: Chain, client: httpx.AsyncClient) -> None:
    erp = world.erp
    await world.reached(client, erp.execute("INSERT INTO machines VALUES ('M-9', 'プレス', 'プレスの点検。')"))
    await world.reached(client, erp.execute("UPDATE machines SET id = 'M-10' WHERE id = 'M-9'"))
    assert await world.document(client, "machines", "M-9") is None
    assert await world.columns(client, "machines", "M-10") == {
        "id": "M-10",
        "title": "プレス",
        "body": "プレスの点検。",
    }


async def test_types_come_with_the_message(world: Chain, client: httpx.AsyncClient) -> None:
    world_row = """INSERT INTO types VALUES (1, '型', '型の点検。', 1234.50, 0.00001234, '1965-02-03',
        '2025-07-08 09:00:00.123456', '2025-07-08 09:00:00.123', '2025-07-08 09:00:00+09', 'infinity', '\\x00ff01',
        ARRAY['赤', '青'], ARRAY[1.50, NULL, 2], '{"a": [1, 2.5], "b": "あ"}')"""
    await world.reached(client, world.erp.execute(world_row))
    assert await world.columns(client, "types", "1") == {
        "id": 1,
        "title": "型",
        "body": "型の点検。",
        "price": "1234.50",
        "free": "0.00001234",
        "day": "1965-02-03",
        "at": "2025-07-08T09:00:00.123456",
        "at3": "2025-07-08T09:00:00.123000",
        "atz": "2025-07-08T00:00:00.000000Z",
        "until": None,
        "raw": "AP8B",
        "tags": ["赤", "青"],
        "nums": ["1.50", None, "2.00"],
        "doc": '{"a": [1, 2.5], "b": "あ"}',
    }


async def test_a_column_is_added(world: Chain, client: httpx.AsyncClient) -> None:
    erp = world.erp
    erp.execute("INSERT INTO notes VALUES (20, '前', '前の点検。')", "ALTER TABLE notes ADD COLUMN place text")
    await world.reached(client, erp.execute("INSERT INTO notes VALUES (21, '後', '後の点検。', '第二工場')"))
    assert "place" not in (await world.columns(client, "notes", "20") or {})
    assert (await world.columns(client, "notes", "21") or {})["place"] == "第二工場"
    await world.reached(client, erp.execute("UPDATE notes SET place = '第一工場' WHERE id = 20"))
    assert (await world.columns(client, "notes", "20") or {})["place"] == "第一工場"


async def test_large_columns_that_do_not_change_stay(world: Chain, client: httpx.AsyncClient) -> None:
    erp = world.erp
    body = "点検" + base64.b64encode(os.urandom(9_000)).decode()
    await world.reached(client, erp.execute("INSERT INTO large VALUES (1, '長い', %(body)s, '開')", body=body))
    await world.reached(client, erp.execute("UPDATE large SET state = '閉' WHERE id = 1"))
    found = await world.columns(client, "large", "1")
    assert found == {"id": 1, "title": "長い", "body": body, "state": "閉"}
    # In one transaction, so that both versions are in one batch.
    other = "交換" + base64.b64encode(os.urandom(9_000)).decode()
    with psycopg.connect(erp.url) as link:
        link.execute("UPDATE large SET body = %s WHERE id = 1", (other,))
        link.execute("UPDATE large SET state = '再開' WHERE id = 1")
    await world.reached(client, erp.execute("SELECT 1"))
    assert await world.columns(client, "large", "1") == {"id": 1, "title": "長い", "body": other, "state": "再開"}


async def test_truncate_and_what_comes_after_it(world: Chain, client: httpx.AsyncClient) -> None:
    erp = world.erp
    await world.reached(
        client, erp.execute("INSERT INTO notes VALUES (31, '消える', '点検。'), (32, '消える', '点検。')")
    )
    with psycopg.connect(erp.url) as link:
        link.execute("TRUNCATE notes")
        link.execute("INSERT INTO notes VALUES (32, '残る', '残る点検。')")
    await world.reached(client, erp.execute("INSERT INTO notes VALUES (33, '新しい', '新しい点検。')"))
    titles = [((await world.columns(client, "notes", str(key))) or {}).get("title") for key in (31, 32, 33)]
    assert titles == [None, "残る", "新しい"]
    assert await world.document(client, "machines", "M-1") is not None, "other tables stay"


async def test_late_snapshot_reads_neither_win_nor_resurrect(world: Chain, client: httpx.AsyncClient) -> None:
    """An incremental snapshot beside writers, and a transaction that changed a row before and commits after it."""
    erp = world.erp
    signal = json.dumps({"type": "incremental", "data-collections": ["public.old"]})
    chosen = random.Random(4).sample(range(1, 60), 20)
    with psycopg.connect(erp.url) as slow:
        slow.execute("UPDATE old SET title = '遅い' WHERE id = 60")
        erp.execute("INSERT INTO shinsen_signal VALUES ('s1', 'execute-snapshot', %(signal)s)", signal=signal)
        for key in chosen[:10]:
            erp.execute(f"DELETE FROM old WHERE id = {key}")
        for key in chosen[10:]:
            erp.execute(f"UPDATE old SET title = '新しい' WHERE id = {key}")
        until(lambda: _windows(erp.url) >= 2, "the snapshot does not run")
    await world.reached(client, erp.execute("SELECT 1"))
    titles = {key: ((await world.columns(client, "old", str(key))) or {}).get("title") for key in range(1, 61)}
    expected: dict[int, Any] = {key: f"台帳{key}" for key in range(1, 60)} | {60: "遅い"}
    expected |= dict.fromkeys(chosen[:10]) | dict.fromkeys(chosen[10:], "新しい")
    assert titles == expected
    assert (await client.get("/v1/dead-letters")).json()["dead_letters"] == []


def _windows(url: str) -> int:
    with psycopg.connect(url) as link:
        rows = link.execute("SELECT count(*) FROM shinsen_signal WHERE type = 'snapshot-window-close'").fetchone()
    return int(rows[0]) if rows else 0


async def test_the_connectors_own_tables_are_no_documents(world: Chain, client: httpx.AsyncClient) -> None:
    await world.reached(client, world.erp.execute("SELECT 1"))
    listed = (await client.get("/v1/sources")).json()["sources"]
    (own,) = [one for one in listed if one["source"] == world.erp.source]
    assert own["collections"] == sorted(TABLES)
    assert re.fullmatch(r"[0-9A-F]+/[0-9A-F]+", own["position"])


async def test_a_table_that_is_added_is_read_without_a_restart(world: Chain, client: httpx.AsyncClient) -> None:
    erp = world.erp
    erp.execute(
        "CREATE TABLE later (id int PRIMARY KEY, title text, body text)",
        f"ALTER PUBLICATION {slot_name(erp.source)} ADD TABLE later",
    )
    erp.tables.append("public.later")
    erp.start_connector()
    position = erp.execute("INSERT INTO later VALUES (1, '後から', '後からの点検。')")
    await asyncio.to_thread(until, lambda: f"{erp.source}.public.later" in erp.topics(), "the table has no topic")
    await world.reached(client, position)
    assert await world.columns(client, "later", "1") == {"id": 1, "title": "後から", "body": "後からの点検。"}
