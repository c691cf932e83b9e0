"""`shinsen run --profile stack` as real processes: two at once, commands that talk to them, and their end."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ops.stack.server import Endpoint
from pipeline.settings import Settings
from tests.ops.commands import ROOT, environment, native, server, shinsen, shinsen_json
from tests.stack.runtime_api import prepared
from tests.stack.worker import Stack

pytestmark = pytest.mark.stack


def variables(settings: Settings) -> dict[str, str]:
    names = ("kafka", "postgres", "weaviate", "weaviate_grpc", "sparql", "topic_prefix", "partitions", "space")
    return {f"SHINSEN_{name.upper()}": str(getattr(settings, name)) for name in names}


def test_the_stack_needs_its_addresses(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ops.cli", "run", "--profile", "stack", "--port", "0"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "SHINSEN_KAFKA, SHINSEN_POSTGRES" in done.stderr and "Traceback" not in done.stderr
    assert shinsen("run", "--profile", "stack", "--demo", "--port", "0").exit_code == 2
    assert shinsen("run", "--profile", "nowhere").exit_code == 2


async def test_two_processes_serve_one_stack(stack_server: Callable[[str], Endpoint], tmp_path: Path) -> None:
    stack = Stack(stack_server, "fuseki", tmp_path)
    await prepared(stack)
    stack.start()
    try:
        await asyncio.to_thread(_served_by_two, stack, tmp_path)
    finally:
        stack.end()
        await stack.remove()


def _served_by_two(stack: Stack, folder: Path) -> None:
    env = variables(stack.settings)
    with (
        server(folder / "a", "--profile", "stack", **env) as one,
        server(folder / "b", "--profile", "stack", **env) as two,
    ):
        answer = one.post(native("MR-1", "F-17の駐車ブレーキを点検した。"))
        search = ("search", "駐車ブレーキ", "--min-freshness", answer["token"], "--wait", "30s")
        found = shinsen_json(*search, "--url", two.url)
        assert [hit["document"]["key"] for hit in found["hits"]] == ["cmms/work_orders/MR-1"]
        command = [sys.executable, "-m", "ops.cli", "status", "--watch", "--every", "0.5", "--url", two.url]
        with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            lines = [watching.stdout.readline() for _ in range(3)]
            watching.kill()
        assert all(re.search(r"\| g1 \| lag reconcile \d+ analyze \d+ apply \d+ \| pending ", line) for line in lines)
        where = environment(SHINSEN_PROFILE="stack", SHINSEN_PORT=one.url.rpartition(":")[2])
        status = [sys.executable, "-m", "ops.cli", "status"]
        done = subprocess.run(status, cwd=ROOT, env=where, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and "stack" in done.stdout and one.url in done.stdout, done.stderr
        assert one.stop(signal.SIGTERM) == 0 and two.stop() == 0
    assert "ended; everything accepted is kept" in one.output() and "Traceback" not in one.output() + two.output()
