"""The runbook's restore, done: PostgreSQL comes back from a backup, older than the indexes and than Kafka's offsets."""

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from ops.stack import kafka_tools
from ops.stack.fetch import default_cache
from ops.stack.server import Endpoint
from ops.stack.tools import postgres_bin
from pipeline.stack_wiring import open_stack_runtime
from schemas.topics import reconcile_group
from tests.stack.test_replay import SETTLED_S, corpus, memo
from tests.stack.worker import Message, Stack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]


@pytest.fixture
async def stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Stack]:
    stack = Stack(stack_server, "fuseki", tmp_path)
    assert await asyncio.to_thread(stack.command("create-topics").wait, 120) == 0, stack.tail()
    yield stack
    stack.end()
    await stack.remove()


def changes_after_the_backup() -> list[Message]:
    """An update, a delete, a new document, one that comes and goes, and something that no mapping takes."""
    return [
        memo("dms/memos/M1", 2, "F-1 を二度目に点検した。"),
        memo("dms/memos/M2", 2, "", op="delete"),
        memo("dms/memos/N1", 1, "バックアップの後に書いた。"),
        memo("dms/memos/N2", 1, "すぐに消す。"),
        memo("dms/memos/N2", 2, "", op="delete"),
        ("dms/memos/bad", json.dumps({"source": "dms", "record": 7}).encode()),
    ]


async def state_of(stack: Stack) -> tuple[dict[str, str], int]:
    """The digest, and how many dead letters are open."""
    async with open_stack_runtime(stack.settings) as runtime:
        return await runtime.digest(), len(await runtime.state.dead_letters())


def program(name: str) -> Path:
    folder = postgres_bin()
    assert folder is not None, "PostgreSQL runs, so its programs are there"
    return folder / name


def backed_up(stack: Stack, file: Path) -> None:
    """Take a backup while the worker runs."""
    subprocess.run(
        [program("pg_dump"), "--format=custom", f"--file={file}", stack.settings.postgres], check=True, timeout=120
    )


def restored(stack: Stack, file: Path) -> None:
    """Put a backup in the place of the database."""
    name = psycopg.conninfo.conninfo_to_dict(stack.settings.postgres)["dbname"]
    admin = psycopg.conninfo.make_conninfo(stack.settings.postgres, dbname="postgres")
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    subprocess.run([program("pg_restore"), f"--dbname={stack.settings.postgres}", file], check=True, timeout=120)


def group_set_back(stack: Stack, to: datetime) -> None:
    """Run the runbook's command."""
    group, at = reconcile_group(stack.settings.topic_prefix), to.strftime("%Y-%m-%dT%H:%M:%S.000")
    arguments = ["--group", group, "--all-topics", "--reset-offsets", "--to-datetime", at, "--execute"]
    command = kafka_tools.tool_command(
        "kafka-consumer-groups", arguments, stack.settings.kafka, default_cache(), install=True
    )
    done = subprocess.run(command, check=False, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0 and "Error" not in done.stdout, done.stdout + done.stderr


async def test_a_database_from_a_backup_catches_up_from_kafka(stack: Stack, tmp_path: Path) -> None:
    worker = stack.start()
    await stack.publish(corpus(6))
    await stack.settled(worker, seconds=SETTLED_S)
    before = datetime.now(UTC) - timedelta(seconds=1)
    await asyncio.to_thread(backed_up, stack, tmp_path / "backup")
    await stack.publish(changes_after_the_backup())
    await stack.settled(worker, seconds=SETTLED_S)
    then = await state_of(stack)
    assert then[1] == 1
    worker.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(worker.wait, 60) == 0, stack.tail()

    await asyncio.to_thread(restored, stack, tmp_path / "backup")
    async with open_stack_runtime(stack.settings) as runtime:
        lost = await runtime.state.records(["dms/memos/N1"])
    assert not lost, "the backup is older than what Kafka has acknowledged"
    await asyncio.to_thread(group_set_back, stack, before)
    again = stack.start()
    await stack.settled(again, seconds=SETTLED_S)
    assert await state_of(stack) == then
