"""A PostgreSQL database of its own under a real Debezium connector, and a worker that reads it."""

import asyncio
import json
import time
import urllib.error
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
from aiokafka.admin import AIOKafkaAdminClient

from ops.connector import connector, database_script, slot_name
from ops.stack.server import Endpoint
from tests.stack.rounds import http
from tests.stack.runtime_api import prepared
from tests.stack.worker import Stack

Started = Callable[[str], Endpoint]
PATIENCE_S = 90.0
ASKS = 3


class SourceDatabase:
    """A source system: its database, its connector."""

    def __init__(self, started: Started, tables: Sequence[str], **changed: str) -> None:
        """`changed` are settings of the connector."""
        self.source = f"erp{uuid.uuid4().hex[:8]}"
        self.at, self._connect, self._kafka = started("postgres"), started("connect"), started("kafka")
        self._first = self.at
        self.tables, self._changed = [f"public.{table}" for table in tables], changed
        self._admin("CREATE DATABASE " + self.source)
        self.url = psycopg.conninfo.make_conninfo(self.at.url, dbname=self.source)

    def execute(self, *statements: str, **values: Any) -> str:
        """Run statements, one transaction each, and return the position in the log after them."""
        with psycopg.connect(self.url, autocommit=True) as link:
            for statement in statements:
                link.execute(statement, values or None)
            row = link.execute("SELECT pg_current_wal_lsn()").fetchone()
        assert row is not None
        return str(row[0])

    def move_to(self, other: Endpoint) -> None:
        """Go on in an empty database of another server, as after a restore."""
        self.at = other
        self._admin("CREATE DATABASE " + self.source)
        self.url = psycopg.conninfo.make_conninfo(other.url, dbname=self.source)

    def leave(self) -> None:
        """Come back from `move_to`; the connector stops."""
        self.stop_connector()
        self.at = self._first
        self.url = psycopg.conninfo.make_conninfo(self.at.url, dbname=self.source)

    def _admin(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.at.url, autocommit=True) as link:
            cursor = link.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def connect(self, **changed: str) -> None:
        """Publish the tables and start the connector; return when it streams."""
        self.execute(f"DROP PUBLICATION IF EXISTS {slot_name(self.source)}", database_script(self.source, self.tables))
        self.start_connector(**changed)

    def start_connector(self, **changed: str) -> None:
        """Start the connector, with other settings if given; return when it streams."""
        account = {"hostname": self.at.host, "port": str(self.at.port), "user": "shinsen", "dbname": self.source}
        settings = self._changed | changed
        config = connector(self.source, self.tables, account, heartbeat_ms=200, partitions=2, **settings)
        http("PUT", f"{self._connect.url}/connectors/{self.source}/config", json.dumps(config).encode())
        before = self._beat()
        until(lambda: self._beat() not in ("", before), f"no heartbeat: {self.status()}")

    def _beat(self) -> str:
        """Written by the connector once it streams."""
        with psycopg.connect(self.url) as link:
            row = link.execute("SELECT max(at)::text FROM shinsen_heartbeat").fetchone()
        return str(row[0] or "") if row else ""

    def status(self) -> str:
        try:
            return http("GET", f"{self._connect.url}/connectors/{self.source}/status").decode()[:2000]
        except urllib.error.HTTPError as error:
            return str(error)

    def stop_connector(self, *, forget: bool = True) -> None:
        """Delete the connector, with its offsets and its slot if it is to begin anew."""
        connectors = f"{self._connect.url}/connectors"
        if self.source not in json.loads(http("GET", connectors)):
            return
        if forget:
            http("PUT", f"{connectors}/{self.source}/stop")
            until(lambda: '"STOPPED"' in self.status(), "the connector does not stop")
            until(self._forgotten, "its offsets stay")
        http("DELETE", f"{connectors}/{self.source}")
        until(lambda: not self._slot(active=True), "its slot stays in use")
        if forget and self._slot():
            self._admin(f"SELECT pg_drop_replication_slot('{slot_name(self.source)}')")

    def _forgotten(self) -> bool:
        try:
            http("DELETE", f"{self._connect.url}/connectors/{self.source}/offsets")
        except urllib.error.HTTPError:
            return False  # its task is still ending
        return True

    def _slot(self, *, active: bool = False) -> bool:
        found = self._admin(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot_name(self.source)}'")
        return any(row[0] or not active for row in found)

    def topics(self) -> list[str]:
        return asyncio.run(self._topics())

    async def _topics(self, *, delete: bool = False) -> list[str]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self._kafka.url)
        await admin.start()
        try:
            own = [name for name in await admin.list_topics() if self.source in name]
            if delete and own:
                await admin.delete_topics(own)
        finally:
            await admin.close()
        return own

    def remove(self) -> None:
        """Leave nothing on the shared servers."""
        self.stop_connector()
        asyncio.run(self._topics(delete=True))
        self._admin(f"DROP DATABASE {self.source} WITH (FORCE)")


def until(reached: Callable[[], bool], otherwise: str, seconds: float = PATIENCE_S) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, otherwise
        time.sleep(0.1)


class Chain:
    """Source database, connector, Kafka, one worker, stores; read through the HTTP API."""

    def __init__(self, stack: Stack, erp: SourceDatabase) -> None:
        self.stack, self.erp = stack, erp
        self.settings = stack.settings.model_copy(update={"source_topics": (f"^{erp.source}\\.",)})

    def work(self) -> None:
        """Start the worker."""
        self.stack.start(source_topics=f"^{self.erp.source}\\.")

    async def reached(self, client: httpx.AsyncClient, position: str, wait: str = "60s") -> dict[str, Any]:
        """Ask with `min_freshness`, so that everything up to the position is there."""
        question = {"query": "点検", "min_freshness": {"source": self.erp.source, "position": position}, "wait": wait}
        for _ in range(ASKS):  # the longest wait of one request is a minute, and a loaded machine may need more
            answer = await client.post("/v1/search", json=question)
            if answer.status_code != 504:
                break
        assert answer.status_code == 200, f"{answer.text}\n{self.stack.tail()}"
        found: dict[str, Any] = answer.json()
        return found

    async def document(self, client: httpx.AsyncClient, table: str, key: str) -> dict[str, Any] | None:
        """Return a document with its record; None when there is none."""
        answer = await client.get(f"/v1/documents/{self.erp.source}/{table}/{key}")
        assert answer.status_code in (200, 404), answer.text
        return dict(answer.json()) if answer.status_code == 200 else None

    async def columns(self, client: httpx.AsyncClient, table: str, key: str) -> dict[str, Any] | None:
        """Return the raw columns of a record that has a document."""
        found = await self.document(client, table, key)
        return None if found is None else dict(found["record"]["columns"])


@contextmanager
def chain(
    started: Started, folder: Path, tables: dict[str, str], *first: str, mapping: str = "", **settings: str
) -> Iterator[Chain]:
    """Set everything up: tables (name to columns), first statements, connector, worker.

    `mapping` is a mapping file in which SOURCE stands for the source's name.
    """
    stack = Stack(started, "fuseki", folder)
    asyncio.run(prepared(stack))
    erp = SourceDatabase(started, list(tables), **settings)
    if mapping:
        (folder / "mappings").mkdir()
        (folder / "mappings" / "own.yaml").write_text(mapping.replace("SOURCE", erp.source))
        stack.settings = stack.settings.model_copy(update={"mappings": folder / "mappings"})
    try:
        erp.execute(*(f"CREATE TABLE {name} ({columns})" for name, columns in tables.items()), *first)
        erp.connect()
        wanted = {f"{erp.source}.{table}" for table in erp.tables}
        until(lambda: wanted <= set(erp.topics()), "a table has no topic: give it a row")
        one = Chain(stack, erp)
        one.work()
        yield one
    finally:
        stack.end()
        erp.remove()
        asyncio.run(stack.remove())
