"""Runs `shinsen` in this process or as a process of its own, with stub models."""

import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import structlog
from typer.testing import CliRunner, Result

from ops.cli.main import app

ROOT = Path(__file__).parents[2]
STUBS = {"SHINSEN_ANALYZER": "stub", "SHINSEN_EMBEDDER": "stub"}
START_S = 60.0


def shinsen(*arguments: str | Path, stdin: str | None = None, env: dict[str, str] | None = None) -> Result:
    """Run a command here; the result holds exit code, standard output and standard error."""
    with _own_logging():
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin, env=STUBS | (env or {}))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@contextlib.contextmanager
def _own_logging() -> Iterator[None]:
    """What a command configures ends with it: its streams are closed afterwards."""
    kept, handlers = structlog.get_config(), logging.root.handlers[:]
    try:
        yield
    finally:
        structlog.configure(**kept)
        logging.root.handlers[:] = handlers


def shinsen_json(*arguments: str | Path, code: int = 0) -> Any:
    """Run a command with --json and return what it printed."""
    result = shinsen(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def native(key: str, body: str, position: int = 1, **record: Any) -> dict[str, Any]:
    """A native event of cmms/work_orders."""
    return {
        "source": "cmms",
        "collection": "work_orders",
        "key": key,
        "position": position,
        "record": {"title": f"保全記録 {key}", "body": body, **record},
    }


def write_events(path: Path, *events: dict[str, Any] | str) -> Path:
    """Write JSON lines; a text is written as it is."""
    lines = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def environment(**more: str) -> dict[str, str]:
    """The environment of a process with stub models and none of this machine's settings."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("SHINSEN_") and name != "PORT"}
    return plain | STUBS | more


class Server:
    """A real `shinsen run` process."""

    def __init__(self, data: Path, *arguments: str, **env: str) -> None:
        """Start it on a free port; `url` is there once it serves."""
        command = [sys.executable, "-m", "ops.cli", "run", "--data", str(data), "--port", "0", *arguments]
        self.data = data
        self.log = data.parent / f"{data.name}.log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment(**env), stdout=out, stderr=out)
        self.url = self._served()

    def _served(self) -> str:
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(r"Serving at (\S+)", self.output()):
                return found[1]
            time.sleep(0.05)
        self.process.kill()
        raise AssertionError(f"the server did not start: {self.output()}")

    def output(self) -> str:
        """What it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def post(self, *events: dict[str, Any]) -> dict[str, Any]:
        """Post events and return the answer."""
        response = httpx.post(f"{self.url}/v1/events", json=list(events), trust_env=False, timeout=30)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer

    def stop(self, number: signal.Signals = signal.SIGINT, timeout: float = 30) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout)


@contextlib.contextmanager
def server(data: Path, *arguments: str, **env: str) -> Iterator[Server]:
    """A server that is gone at the end, whatever happens."""
    running = Server(data, *arguments, **env)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(10)
