"""`make stack` from nothing, for real: servers, topics, workers, the API; the demo; a death; an end; a second start."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ops.stack import ports, process, servers, state

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]
START_S = 300.0


class Running:
    """`python -m ops.stack run` over a folder, with stub models and without Connect, which has tests of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.log = folder.parent / "run.log"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ops.stack", *arguments, "--data", str(self.folder)]

    def environment(self) -> dict[str, str]:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("SHINSEN_")}
        cache = {n: v for n, v in os.environ.items() if n == "SHINSEN_STACK_CACHE"}
        return plain | cache | {"SHINSEN_ANALYZER": "stub", "SHINSEN_EMBEDDER": "stub"}

    def start(self) -> str:
        """Start it and return what it printed until it was ready."""
        options = ("--port", str(self.port), "--sparql", "oxigraph", "--no-connect")
        command = self.command("run", *options)
        with self.log.open("wb") as out:
            started = subprocess.Popen(command, env=self.environment(), stdout=out, stderr=out)
        self._process = started
        process.wait_until(lambda: "Next, in another" in self.said() or started.poll() is not None, START_S)
        assert "Next, in another" in self.said(), self.said()
        return self.said()

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def interrupt(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(120)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def other(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another command over the same folder, to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.environment(), capture_output=True, text=True, timeout=300, check=False
        )

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        servers.purge(self.folder)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    servers.fetch(["weaviate", "kafka", "postgres", "oxigraph"])
    running = Running(tmp_path_factory.mktemp("whole") / "stack", ports.choose(("api",), ())["api"])
    yield running
    running.end()


def test_the_whole_stack_runs_dies_in_parts_and_comes_back(stack: Running) -> None:
    said = stack.start()
    url = f"http://127.0.0.1:{stack.port}"
    for name in ("weaviate", "kafka", "postgres", "oxigraph", "worker-1", "worker-2", "api"):
        assert re.search(rf"^  {name} .*pid \d+", said, re.MULTILINE), said
    assert re.search(r"ready in \d+\.\d s: programs fetched", said) and "make stack-demo" in said and url in said
    assert stack.other("status").returncode == 0
    second = stack.other("run", "--port", str(stack.port))
    assert second.returncode == 1 and "runs already" in second.stderr

    loaded = stack.other("demo")
    assert loaded.returncode == 0 and "AR-2025-004" in loaded.stdout, loaded.stdout + loaded.stderr
    status = httpx.get(f"{url}/v1/status", trust_env=False, timeout=30).json()
    assert status["counts"]["full"] > 100 and status["counts"]["dead_letters"] == 0

    _a_killed_worker_comes_back(stack)
    _a_killed_server_comes_back(stack, url)
    assert stack.interrupt() == 0
    assert servers.endpoints(stack.folder) == {} and "data stay in" in stack.said()
    _a_second_start_has_the_data(stack, url, status["counts"]["full"])
    _what_a_killed_runner_leaves_is_taken_over(stack)
    done = stack.other("down")
    assert done.returncode == 0 and servers.endpoints(stack.folder) == {}, done.stderr


def _a_killed_worker_comes_back(stack: Running) -> None:
    before = servers.endpoint("worker-2", stack.folder).pid
    os.kill(before, signal.SIGKILL)
    assert process.wait_until(lambda: _pid(stack, "worker-2") not in (None, before), 60), stack.said()
    assert "worker-2 was killed (9); it starts again in 1 s" in stack.said()


def _a_killed_server_comes_back(stack: Running, url: str) -> None:
    before = servers.endpoint("oxigraph", stack.folder).pid
    os.kill(before, signal.SIGKILL)
    assert process.wait_until(lambda: _pid(stack, "oxigraph") not in (None, before), 60), stack.said()
    ready = lambda: httpx.get(f"{url}/health/ready", trust_env=False, timeout=30).status_code == 200  # noqa: E731
    assert process.wait_until(ready, 60, 0.5)


def _a_second_start_has_the_data(stack: Running, url: str, full: int) -> None:
    stack.start()
    counts = httpx.get(f"{url}/v1/status", trust_env=False, timeout=30).json()["counts"]
    assert counts["full"] == full
    again = stack.other("demo")
    assert "nothing is loaded again" in again.stdout


def _what_a_killed_runner_leaves_is_taken_over(stack: Running) -> None:
    kept = {name: endpoint.pid for name, endpoint in servers.endpoints(stack.folder).items()}
    stack.kill()
    stack.start()
    assert {name: endpoint.pid for name, endpoint in servers.endpoints(stack.folder).items()} == kept


def _pid(stack: Running, name: str) -> int | None:
    record = state.load(stack.folder)[name].process
    return record.pid if record is not None and process.alive(record) else None
