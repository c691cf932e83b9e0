"""Sources: how far they were read, a restored database, and what it does not have any more."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.settings import Settings
from tests.api.conftest import as_groups


def change(key: str, lsn: int, second: int, title: str = "", op: str = "u", table: str = "machines") -> dict[str, Any]:
    row = {"id": key, "title": title, "body": f"{title}の点検"}
    source = {"connector": "postgresql", "name": "erp", "schema": "public", "table": table, "lsn": lsn}
    at = {"ts_ms": 1_752_000_000_000 + second * 1000}
    before, after = (row, None) if op == "d" else (None, row)
    return {"op": op, "before": before, "after": after, "source": source | at}


MAPPING = """
source: erp
collection: machines
key: [id]
title: "{title}"
body: ["{body}"]
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Debezium bodies over HTTP have no message key: the mapping names the key column."""
    (tmp_path / "mappings").mkdir()
    (tmp_path / "mappings" / "machines.yaml").write_text(MAPPING)
    given = {"data": tmp_path / "data", "mappings": tmp_path / "mappings"}
    return Settings.model_validate({**given, "analyzer": "stub", "embedder": "stub", "workers": 1})


@pytest.fixture
def publish(client: httpx.AsyncClient) -> Any:
    async def post(*events: dict[str, Any]) -> None:
        lines = "\n".join(json.dumps(event) for event in events)
        headers = {"content-type": "application/x-ndjson"}
        done = await client.post("/v1/events?wait=applied&timeout=20s", content=lines, headers=headers)
        assert done.status_code == 200, done.text

    return post


async def titles(client: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("A", "B"):
        answer = await client.get(f"/v1/documents/erp/machines/{key}")
        found[key] = answer.json()["document"]["title"] if answer.status_code == 200 else answer.status_code
    return found


async def test_a_restored_database(client: httpx.AsyncClient, publish: Any) -> None:
    await publish(change("A", 900, 1, "旧甲"), change("B", 950, 2, "旧乙"))
    # Restored to an older state: positions are lower now, though it is later. B is not in it.
    await publish(*(change("A", 100 + n, 100 + n, f"新{n}") for n in range(12)))
    assert (await titles(client))["A"] == "旧甲"
    listed = (await client.get("/v1/sources")).json()
    assert listed["sources"][0] | {"at": ""} == {
        "source": "erp",
        "epoch": 0,
        "since": "",
        "position": "0/3B6",
        "at": "",
        "collections": ["machines"],
        "recent": 14,
        "superseded": 12,
    }
    assert "12 of the last 14 events of source erp were superseded" in listed["warnings"][0]
    assert "shinsen source new-epoch erp" in listed["warnings"][0]
    assert (await client.get("/v1/status")).json()["warnings"] == listed["warnings"]

    begun = await client.post("/v1/sources/erp/epochs")
    assert begun.status_code == 200 and begun.json()["epoch"] == 1, begun.text
    await publish(change("A", 120, 200, "新甲", op="r"))
    assert await titles(client) == {"A": "新甲", "B": "旧乙"}
    assert (await client.get("/v1/sources")).json()["warnings"] == []

    forgotten = (await client.post("/v1/sources/erp/forget-older")).json()
    assert (forgotten["epoch"], forgotten["collections"]) == (1, ["machines"])
    await publish(change("A", 121, 201, "新甲二"))
    assert await titles(client) == {"A": "新甲二", "B": 404}


async def test_what_came_before_a_new_epoch_stays_in_the_old_one(client: httpx.AsyncClient, publish: Any) -> None:
    await publish(change("A", 900, 1, "旧"))
    await client.post("/v1/sources/erp/epochs")
    await publish(change("A", 5, 2, "新"))
    before = (await client.get("/v1/digest")).json()
    await client.post("/v1/replay")
    assert (await client.get("/v1/digest")).json() == before
    await publish(change("A", 4, 3, "遅れ"))
    assert (await titles(client))["A"] == "新"


async def test_re_reading_old_events_is_no_alarm(client: httpx.AsyncClient, publish: Any) -> None:
    events = [change("A", 100 + n, n, f"版{n}") for n in range(15)]
    await publish(*events)
    await publish(*events)
    listed = (await client.get("/v1/sources")).json()
    assert (listed["warnings"], listed["sources"][0]["superseded"]) == ([], 0)


async def test_heartbeats_that_go_back_are_an_alarm_without_any_row(client: httpx.AsyncClient, publish: Any) -> None:
    await publish(change("x", 900, 1, table="shinsen_heartbeat"))
    await publish(*(change("x", 100 + n, 10 + n, table="shinsen_heartbeat") for n in range(1)))
    for n in range(12):
        await publish(change("x", 110 + n, 20 + n, table="shinsen_heartbeat"))
    listed = (await client.get("/v1/sources")).json()
    assert "of source erp were superseded" in listed["warnings"][0]
    assert listed["sources"][0]["collections"] == [], "a heartbeat is no document"


async def test_sources_that_are_not_known(client: httpx.AsyncClient, publish: Any) -> None:
    await publish(change("A", 1, 1, "甲"))
    unknown = await client.post("/v1/sources/epr/epochs")
    assert unknown.status_code == 404 and "known are: erp" in unknown.json()["detail"]
    first = await client.post("/v1/sources/erp/forget-older")
    assert first.status_code == 409 and "new-epoch" in first.json()["detail"]


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/erp/epochs"), ("POST", "/erp/forget-older")])
async def test_sources_are_for_operators(client: httpx.AsyncClient, method: str, path: str) -> None:
    assert (await client.request(method, f"/v1/sources{path}", headers=as_groups("staff"))).status_code == 403
