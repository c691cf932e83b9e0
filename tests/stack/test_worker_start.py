"""A worker that starts before its servers waits for them; one that cannot ever start says so with its exit code."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psycopg
import pytest

from ops.stack.ports import choose
from ops.stack.server import Endpoint
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults, pytest.mark.timeout(200)]


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 60) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


async def forwarding(port: int, to: tuple[str, int]) -> asyncio.Server:
    """Let a server be reached under another port from now on."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*to)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(1 << 16):
                    target.write(data)
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    return await asyncio.start_server(pass_on, "127.0.0.1", port)


async def said(stack: Stack, word: str, seconds: float = 40) -> None:
    async with asyncio.timeout(seconds):
        while word not in stack.log.read_text():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.1)


async def test_a_worker_waits_at_its_start_for_kafka_and_for_postgres(stack: Stack) -> None:
    ports = choose(["kafka", "postgres"], ())
    host, _, kafka = stack.settings.kafka.partition(":")
    database = psycopg.conninfo.conninfo_to_dict(stack.settings.postgres)
    away = psycopg.conninfo.make_conninfo(stack.settings.postgres, host="127.0.0.1", port=ports["postgres"])
    worker = stack.start(kafka=f"127.0.0.1:{ports['kafka']}", postgres=away)
    await said(stack, "worker_waits")
    assert "Kafka at" in stack.tail() and "Traceback" not in stack.log.read_text()
    first = await forwarding(ports["kafka"], (host, int(kafka)))
    await said(stack, "PostgreSQL: ")
    await asyncio.sleep(2)
    assert worker.poll() is None, stack.tail()
    second = await forwarding(ports["postgres"], (str(database["host"]), int(str(database["port"]))))
    try:
        await said(stack, "generation_served")
        await stack.publish([("k", b"not json")])
        await stack.settled(worker)
        assert worker.poll() is None
    finally:
        stack.end()
        for server in (first, second):
            server.close()


async def test_a_worker_that_waits_can_be_told_to_stop(stack: Stack) -> None:
    away = psycopg.conninfo.make_conninfo(stack.settings.postgres, host="127.0.0.1", port=choose(["x"], ())["x"])
    worker = stack.start(postgres=away)
    await said(stack, "worker_waits")
    worker.terminate()
    assert await asyncio.to_thread(worker.wait, 15) == 0, stack.tail()


async def test_a_worker_whose_configuration_is_wrong_ends_with_its_own_exit_code(stack: Stack, tmp_path: Path) -> None:
    mappings = tmp_path / "mappings"
    mappings.mkdir()
    (mappings / "wrong.yaml").write_text("source: [1]\n")
    assert await asyncio.to_thread(stack.start(mappings=mappings).wait, 60) == 2, stack.tail()
    assert "wrong.yaml" in stack.tail()
