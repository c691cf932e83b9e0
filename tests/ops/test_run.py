"""shinsen run as a real process: ports, hosts, the demo twice, signals, and commands that find the server."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.ops.commands import ROOT, Server, environment, native, server, shinsen, shinsen_json

DEMO_RECORDS = 115


def run_to_end(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ops.cli", "run", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment(**env), capture_output=True, text=True, timeout=120, check=False
    )


def test_a_taken_port_is_said_with_who_has_it(tmp_path: Path) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        done = run_to_end("--port", str(port), "--data", str(tmp_path / "d"))
        assert done.returncode == 3
        assert f"port {port} is taken by process {os.getpid()}" in done.stderr
        assert "--port" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "d").exists()


def test_the_port_comes_from_the_environment(tmp_path: Path) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = str(sock.getsockname()[1])
        for name in ("PORT", "SHINSEN_PORT"):
            done = run_to_end("--data", str(tmp_path / "d"), **{name: port})
            assert f"port {port} is taken" in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_only_this_machine_may_be_served(tmp_path: Path, host: str) -> None:
    result = shinsen("run", "--host", host, "--data", tmp_path / "d")
    assert result.exit_code == 2
    assert "no access control" in result.stderr


def test_a_folder_in_use_is_said(tmp_path: Path) -> None:
    with server(tmp_path / "d") as running:
        done = run_to_end("--port", "0", "--data", str(running.data))
        assert done.returncode == 3
        assert str(running.process.pid) in done.stderr
        assert running.url in done.stderr


def test_commands_find_the_server_over_the_folder(tmp_path: Path) -> None:
    with server(tmp_path / "d") as running:
        answer = running.post(native("MR-1", "F-17の駐車ブレーキを点検した。"))
        found = shinsen_json("search", "駐車ブレーキ", "--min-freshness", answer["token"], "--data", running.data)
        assert [hit["document"]["key"] for hit in found["hits"]] == ["cmms/work_orders/MR-1"]
        assert shinsen_json("status", "--url", running.url)["counts"]["documents"] == 1
        assert running.url in shinsen("status", "--data", running.data).stdout
        assert httpx.get(f"{running.url}/health/ready", trust_env=False).status_code == 200
        assert running.stop() == 0
    assert "ended; everything accepted is kept" in running.output()
    assert shinsen_json("status", "--data", running.data)["counts"]["documents"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_ctrl_c_loses_nothing_that_was_accepted(tmp_path: Path, number: signal.Signals) -> None:
    """A publisher sends all the time; what was answered with 202 before the end is there after the next start."""
    accepted: list[str] = []
    with server(tmp_path / "d", SHINSEN_STUB_DELAY="0.02") as running:
        publishing = threading.Thread(target=_publish_until_refused, args=(running, accepted))
        publishing.start()
        time.sleep(1.0)
        assert running.stop(number) == 0, running.output()
        publishing.join(30)
    assert len(accepted) > 10
    assert "Traceback" not in running.output()
    with server(tmp_path / "d") as again:
        _wait_until_indexed(again)
        listed: list[str] = []
        after = ""
        while page := httpx.get(
            f"{again.url}/v1/documents", params={"limit": 200, "after": after}, trust_env=False
        ).json():
            listed += [document["key"] for document in page["documents"]]
            after = page["next"]
            if not after:
                break
    assert set(accepted) <= set(listed)


def _publish_until_refused(running: Server, accepted: list[str]) -> None:
    number = 0
    while running.process.poll() is None:
        events = [native(f"MR-{number + n}", f"点検記録 {number + n}。") for n in range(5)]
        try:
            answer = running.post(*events)
        except httpx.HTTPError:
            return
        accepted += [result["key"] for result in answer["results"]]
        number += 5


def _wait_until_indexed(running: Server) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not any(shinsen_json("status", "--url", running.url)["pending"].values()):
            return
        time.sleep(0.1)
    raise AssertionError("still pending after 60 s")


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    with server(tmp_path / "d", SHINSEN_STUB_DELAY="0.2") as running:
        running.post(*[native(f"MR-{n}", "点検。") for n in range(20)])
        with socket.create_connection(("127.0.0.1", int(running.url.rsplit(":", 1)[1]))) as idle:
            # A request that never ends keeps the first Ctrl-C waiting for its grace.
            idle.sendall(b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n")
            time.sleep(0.3)
            running.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            started = time.monotonic()
            assert running.stop(timeout=3) in (0, 130)
            assert time.monotonic() - started < 3
    assert shinsen_json("status", "--data", running.data)["counts"]["records"] == 20


def test_the_demo_is_loaded_once(tmp_path: Path) -> None:
    data = str(tmp_path / "d")
    first = run_to_end("--demo", "--exit", "--port", "0", "--data", data)
    assert first.returncode == 0, first.stderr + first.stdout
    assert "F-17の事故原因は何か。" in first.stdout
    assert "Freshness" in first.stdout
    before = shinsen_json("status", "--data", data)
    assert before["counts"]["documents"] == DEMO_RECORDS
    second = run_to_end("--demo", "--exit", "--port", "0", "--data", data)
    assert second.returncode == 0
    assert "nothing is loaded again" in second.stdout
    assert shinsen_json("status", "--data", data)["events"] == before["events"]
    assert shinsen_json("digest", "--data", data) == shinsen_json("digest", "--data", data)


def test_a_demo_load_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """Ctrl-C while the corpus is being indexed; the next start finishes it and publishes nothing again."""
    data = tmp_path / "d"
    arguments = [sys.executable, "-m", "ops.cli", "run", "--demo", "--port", "0", "--data", str(data)]
    slow = subprocess.Popen(
        arguments,
        cwd=ROOT,
        env=environment(SHINSEN_STUB_DELAY="0.2"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        end = time.monotonic() + 60
        while not (data / "demo.json").exists() and time.monotonic() < end:
            time.sleep(0.05)
        slow.send_signal(signal.SIGINT)
        _, errors = slow.communicate(timeout=60)
    finally:
        slow.kill()
    assert slow.returncode == 0, errors
    assert b"Traceback" not in errors
    finished = run_to_end("--demo", "--exit", "--port", "0", "--data", str(data))
    assert finished.returncode == 0, finished.stderr
    assert "nothing is loaded again" in finished.stdout
    assert shinsen_json("status", "--data", data)["counts"]["full"] == DEMO_RECORDS
