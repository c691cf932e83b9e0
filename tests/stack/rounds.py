"""Real requests to each server: write something, read it back."""

import asyncio
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from ops.stack.server import Endpoint

TEXT = "新鮮な文書"
TOPIC = "shinsen-check"
GRAPH_DATA = f'INSERT DATA {{ <urn:a> <urn:b> "{TEXT}" }}'


@dataclass(frozen=True)
class Round:
    """What to write to a server, and how to read it back."""

    write: Callable[[Endpoint], None]
    read: Callable[[Endpoint], str]


def _postgres_write(at: Endpoint) -> None:
    with psycopg.connect(at.url) as link:
        link.execute("CREATE TABLE notes (body text)")
        link.execute("INSERT INTO notes VALUES (%s)", (TEXT,))


def _postgres_read(at: Endpoint) -> str:
    with psycopg.connect(at.url) as link:
        row = link.execute("SELECT body, current_setting('wal_level') FROM notes").fetchone()
    assert row is not None
    assert row[1] == "logical"
    return str(row[0])


async def create_topic(at: Endpoint, name: str) -> None:
    """Make a topic of one partition."""
    admin = AIOKafkaAdminClient(bootstrap_servers=at.url)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 1, 1)])
    finally:
        await admin.close()


async def _produce(at: Endpoint) -> None:
    await create_topic(at, TOPIC)
    async with AIOKafkaProducer(bootstrap_servers=at.url, acks="all") as producer:
        await producer.send_and_wait(TOPIC, TEXT.encode())


async def _consume(at: Endpoint) -> str:
    # A group, so that the group coordinator and its topic are used too.
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=at.url,
        group_id="check",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        message = await asyncio.wait_for(consumer.getone(), 30)
    assert message.value is not None
    return bytes(message.value).decode()


def http(method: str, url: str, body: bytes | None = None, content_type: str = "application/json") -> bytes:
    """One HTTP request; raises on an error status."""
    headers = {"Content-Type": content_type} if body else {}
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())


def _weaviate_write(at: Endpoint) -> None:
    schema = {"class": "Note", "properties": [{"name": "body", "dataType": ["text"]}]}
    http("POST", f"{at.url}/v1/schema", json.dumps(schema).encode())
    thing = {"class": "Note", "properties": {"body": TEXT}, "vector": [0.1, 0.2]}
    http("POST", f"{at.url}/v1/objects", json.dumps(thing).encode())


def _weaviate_read(at: Endpoint) -> str:
    answer = json.loads(http("GET", f"{at.url}/v1/objects?class=Note"))
    return str(answer["objects"][0]["properties"]["body"])


def _sparql_write(at: Endpoint) -> None:
    http("POST", at.urls["update"], GRAPH_DATA.encode(), "application/sparql-update")


def _sparql_read(at: Endpoint) -> str:
    query = urllib.parse.urlencode({"query": "SELECT ?o { <urn:a> <urn:b> ?o }"})
    request = urllib.request.Request(
        f"{at.urls['query']}?{query}", headers={"Accept": "application/sparql-results+json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        answer = json.load(response)
    return str(answer["results"]["bindings"][0]["o"]["value"])


ROUNDS = {
    "postgres": Round(_postgres_write, _postgres_read),
    "kafka": Round(lambda at: asyncio.run(_produce(at)), lambda at: asyncio.run(_consume(at))),
    "weaviate": Round(_weaviate_write, _weaviate_read),
    "fuseki": Round(_sparql_write, _sparql_read),
    "oxigraph": Round(_sparql_write, _sparql_read),
}
