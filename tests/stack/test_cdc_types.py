"""Without schemas the mapping tells the types; a column that was not sent is filled by a version that comes late."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from ops.stack.server import Endpoint
from pipeline.decoding.debezium_schema import MARKER
from tests.stack.cdc import Chain, chain
from tests.stack.runtime_api import serving
from tests.stack.worker import Message

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

# What Debezium does by default: decimals in base64, dates in days, times in milli- or microseconds.
BARE = {"value.converter.schemas.enable": "false", "decimal.handling.mode": "precise"}
TABLES = {
    "items": """id int PRIMARY KEY, title text, body text, price numeric(12,2), weight numeric, day date, at timestamp,
        at3 timestamp(3), atz timestamptz, until timestamp"""
}
FIRST = [
    """INSERT INTO items VALUES (1, '部品', '部品の点検。', -1234.50, 0.125, '1965-02-03', '1972-05-15 09:00:00.123456',
        '2025-07-08 09:00:00.123', '2025-07-08 09:00:00+09', 'infinity')""",
    "INSERT INTO items VALUES (2, '部品', '部品の点検。', 12.34, NULL, '9999-12-31', '9999-12-31', NULL, NULL, NULL)",
]
MAPPING = """
source: SOURCE
collection: items
key: [id]
title: "{title}"
body: ["{body}"]
columns:
  price: {type: decimal, scale: 2}
  weight: {type: decimal}
  day: {type: date}
  at: {type: datetime, unit: us}
  at3: {type: datetime, unit: ms}
  atz: {type: datetime}
  until: {type: datetime}
fields:
  price: {type: decimal}
  weight: {type: decimal}
  day: {type: date}
  at: {type: datetime}
  at3: {type: datetime}
  atz: {type: datetime}
  until: {type: datetime}
"""


@pytest.fixture(scope="module")
def world(stack_server: Callable[[str], Endpoint], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with chain(stack_server, tmp_path_factory.mktemp("cdc"), TABLES, *FIRST, mapping=MAPPING, **BARE) as opened:
        yield opened


@pytest.fixture
async def client(world: Chain) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(world.settings) as (_, client):
        yield client


async def test_the_mapping_reads_what_no_schema_told(world: Chain, client: httpx.AsyncClient) -> None:
    await world.reached(client, world.erp.execute("SELECT 1"))
    first, second = [await world.document(client, "items", str(key)) for key in (1, 2)]
    assert first is not None and second is not None
    assert first["record"]["columns"]["day"] == -1793, "raw in the record, so that the mapping can be mended"
    assert first["fields"] == {
        "price": "-1234.5",
        "weight": "0.125",
        "day": "1965-02-03",
        "at": "1972-05-15T00:00:00.123456Z",
        "at3": "2025-07-08T00:00:00.123000Z",
        "atz": "2025-07-08T00:00:00.000000Z",
    }
    expected = {"price": "12.34", "day": "9999-12-31", "at": "9999-12-30T15:00:00.000000Z"}
    assert second["fields"] == expected


def _message(op: str, lsn: int, **row: Any) -> Message:
    block = {"connector": "postgresql", "name": "late", "schema": "public", "table": "notes", "lsn": lsn}
    body = {"op": op, "before": None, "after": row, "source": block | {"ts_ms": 1_752_000_000_000 + lsn}}
    return json.dumps({"id": row["id"]}), json.dumps(body, ensure_ascii=False).encode()


async def test_a_late_version_fills_the_document(world: Chain, client: httpx.AsyncClient) -> None:
    async def read() -> dict[str, Any]:
        await world.stack.settled(seconds=60)
        return dict((await client.get("/v1/documents/late/notes/1")).json())

    await world.stack.publish([_message("u", 300, id=1, title="新", body=MARKER, memo=MARKER)])
    assert (await read())["record"]["columns"] == {"id": 1, "title": "新"}
    await world.stack.publish([_message("u", 200, id=1, title="中", body="ブレーキの点検。", memo=MARKER)])
    filled = await read()
    assert filled["record"]["columns"] == {"id": 1, "title": "新", "body": "ブレーキの点検。"}
    assert (filled["document"]["title"], filled["body"]) == ("新", "ブレーキの点検。")
    await world.stack.publish([_message("c", 100, id=1, title="古", body="古い点検。", memo="控え")])
    columns = {"id": 1, "title": "新", "body": "ブレーキの点検。", "memo": "控え"}
    assert (await read())["record"]["columns"] == columns
    found = await client.post("/v1/search", json={"query": "ブレーキの点検"})
    assert "late/notes/1" in [hit["document"]["key"] for hit in found.json()["hits"]]
