"""Kafka Connect with Debezium, for real: a row's life becomes change events."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from aiokafka import AIOKafkaConsumer

from ops.stack import process, servers
from ops.stack.server import Endpoint

from .rounds import create_topic, http

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
TOPIC = "erp.public.machines"
CONNECTOR = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "topic.prefix": "erp",
    "table.include.list": "public.machines",
    "slot.name": "erp",
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Connect with what it requires, and a table of one row."""
    directory = tmp_path_factory.mktemp("connect")
    servers.fetch(["connect"])
    try:
        found = servers.start(["connect"], directory)
        with psycopg.connect(found["postgres"].url) as link:
            link.execute("CREATE TABLE machines (id int PRIMARY KEY, name text)")
            link.execute("INSERT INTO machines VALUES (1, '旋盤')")
        # A consumer that comes before its topic does not see it appear.
        asyncio.run(create_topic(found["kafka"], TOPIC))
        at = found["postgres"]
        secrets = directory / "secrets.properties"
        secrets.write_text("user=shinsen\n")
        # As a password would be: in a file of the worker, not in the connector's settings.
        account = {"hostname": at.host, "port": str(at.port), "user": f"${{file:{secrets}:user}}", "dbname": "shinsen"}
        config = CONNECTOR | {f"database.{key}": value for key, value in account.items()}
        http("PUT", f"{found['connect'].url}/connectors/erp/config", json.dumps(config).encode())
        yield directory
    finally:
        servers.purge(directory)


async def test_a_row_becomes_change_events_across_a_crash_of_connect(running: Path) -> None:
    await _expect(servers.endpoint("kafka", running), ["r"])
    # Killed before its first offsets are written, Debezium takes a new snapshot, and misses the delete for ever.
    offsets = f"{servers.endpoint('connect', running).url}/connectors/erp/offsets"
    assert process.wait_until(lambda: json.loads(http("GET", offsets))["offsets"] != [], 30)
    servers.kill("connect", running)
    with psycopg.connect(servers.endpoint("postgres", running).url) as link:
        link.execute("UPDATE machines SET name = 'フライス盤' WHERE id = 1")
        link.execute("DELETE FROM machines WHERE id = 1")

    connect = servers.start(["connect"], running)["connect"]

    assert json.loads(http("GET", f"{connect.url}/connectors")) == ["erp"]
    await _expect(servers.endpoint("kafka", running), ["r", "u", "d", None])


async def _expect(kafka: Endpoint, operations: list[str | None]) -> None:
    """Read the topic from its start until it holds these operations; None is a tombstone."""
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=kafka.url, auto_offset_reset="earliest")
    seen: list[str | None] = []

    async with asyncio.timeout(90), consumer:
        while len(seen) < len(operations):
            message = await consumer.getone()
            seen.append(json.loads(message.value)["op"] if message.value else None)
    assert seen == operations
