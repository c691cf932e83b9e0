"""Processes, ports and messages of ops.stack, without any server."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ops.stack import addresses, ports, process, registry, servers, state, tools
from ops.stack.__main__ import main
from ops.stack.errors import StackError
from ops.stack.fetch import Fetcher
from ops.stack.holder import end_holder, holder, holding
from ops.stack.process import Launch, Process
from ops.stack.programs import Api


@pytest.fixture
def sleeper(tmp_path: Path) -> Process:
    """A process that would end by itself in a minute."""
    return process.spawn(Launch(["sleep", "60"]), cwd=tmp_path, log=tmp_path / "log")


def test_a_process_is_known_and_ended(sleeper: Process) -> None:
    assert process.alive(sleeper)
    assert process.end(sleeper, signal.SIGTERM, 5)
    assert not process.alive(sleeper)
    assert process.end(sleeper, signal.SIGTERM, 5)


def test_a_recycled_id_is_never_signalled(sleeper: Process) -> None:
    other = Process(sleeper.pid, "another birth")
    assert not process.alive(other)
    assert not process.send(other, signal.SIGKILL)
    assert process.end(other, signal.SIGKILL, 1)
    assert process.alive(sleeper)
    process.end(sleeper, signal.SIGKILL, 5)


def test_a_stubborn_process_is_killed(tmp_path: Path) -> None:
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    stubborn = process.spawn(Launch(["python3", "-c", script]), cwd=tmp_path, log=tmp_path / "log")
    assert process.wait_until(lambda: (tmp_path / "log").read_text().endswith("\n1\n"), 10)
    assert process.end(stubborn, signal.SIGTERM, 0.5)
    assert not process.alive(stubborn)


def test_chosen_ports_are_free_and_in_a_row() -> None:
    chosen = ports.choose("abcdef", ())
    assert list(chosen) == list("abcdef")
    assert list(chosen.values()) == [chosen["a"] + step for step in range(6)]
    assert all(ports.is_free(port) for port in chosen.values())


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind((ports.HOST, 0))
        holder.listen()
        port = holder.getsockname()[1]
        state.open_directory(tmp_path)
        record = state.Record({"http": port}, str(tmp_path / "oxigraph"), str(tmp_path / "log"))
        state.save(tmp_path, "oxigraph", record)
        with pytest.raises(StackError, match=f"port {port} .* taken") as failure:
            servers.start(["oxigraph"], tmp_path)
    assert "ss -ltnp" in failure.value.todo


@pytest.mark.parametrize(("program", "package"), tools.PACKAGES.items())
def test_a_missing_program_names_its_package(
    program: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "which", lambda name: None)
    monkeypatch.setattr(tools, "postgres_bin", lambda: None)
    wanted = tools.Tools(install=False, logs=tmp_path)
    find = {"java": wanted.java, "mvn": wanted.mvn, "go": wanted.go, "initdb": wanted.postgres_bin}[program]
    with pytest.raises(StackError, match=f"{program} is not installed") as failure:
        find()
    assert package in failure.value.todo


def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(StackError, match="not Java 17"):
        tools.Tools(install=False, logs=tmp_path).java()


def test_a_failed_fetch_leaves_no_half_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: "/bin/false")
    with pytest.raises(StackError, match="exit status 1") as failure:
        Fetcher(tmp_path, install=False).go("thing-1", "example.org/thing@v1")
    assert failure.value.log == tmp_path / "logs" / "thing-1.log"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "thing-1.lock"]


def test_a_fetched_folder_needs_no_builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: None)
    (tmp_path / "thing-1").mkdir()
    Fetcher(tmp_path, install=False).go("thing-1", "example.org/thing@v1")
    assert not list((tmp_path / "thing-1").iterdir())
    assert not (tmp_path / "logs").exists(), "nothing was built"


@pytest.mark.skipif(os.geteuid() != 0, reason="without root it is sudo that runs apt-get")
def test_a_missing_program_is_installed_where_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = f'#!/bin/sh\n[ "$1" = update ] || {{ echo got "$@"; /bin/cp /bin/true {folder}/mvn; }}\n'
    (folder / "apt-get").write_text(script)
    (folder / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))

    assert tools.Tools(install=True, logs=tmp_path).mvn() == str(folder / "mvn")

    assert (tmp_path / "apt-get.log").read_text().rstrip().endswith("maven")


def test_an_error_says_what_where_and_next(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nlast words\n")
    message = str(StackError("it broke", todo="mend it", log=log))
    assert message.splitlines() == ["it broke", f"Log: {log}", "  | first", "  | last words", "Next: mend it"]


def test_a_damaged_state_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / state.FILE).write_text("{")
    with pytest.raises(StackError, match="damaged"):
        state.load(tmp_path)


def test_a_lock_is_waited_for_only_so_long(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with state.locked(lock), pytest.raises(StackError, match="stayed locked"), state.locked(lock, 0.1):
        pass


def test_purge_spares_a_folder_that_is_no_stack(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    servers.purge(tmp_path)
    assert (tmp_path / "precious").exists()


def test_the_command_line_reports_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "redis", "--data", str(tmp_path)]) == 1
    assert "no server 'redis'" in capsys.readouterr().err
    assert main(["status", "--data", str(tmp_path)]) == 1
    assert main(["down", "--data", str(tmp_path)]) == 0


def test_how_a_process_ended_is_known(tmp_path: Path) -> None:
    ended = process.spawn(Launch(["sh", "-c", "exit 2"]), cwd=tmp_path, log=tmp_path / "log")
    assert process.wait_until(lambda: process.exit_code(ended) is not None, 10)
    assert process.exit_code(ended) == 2
    killed = process.spawn(Launch(["sleep", "60"]), cwd=tmp_path, log=tmp_path / "log")
    assert process.exit_code(killed) is None
    process.end(killed, signal.SIGKILL, 5)
    assert process.exit_code(killed) == -signal.SIGKILL


def test_our_own_programs_start_last_and_are_known_by_name() -> None:
    plan = registry.plan(["api", "worker-2", "connect", "oxigraph"])
    waves = [[server.name for server in wave] for wave in registry.waves(plan)]
    assert waves == [["kafka", "postgres", "oxigraph"], ["connect", "api", "worker-2"]]
    with pytest.raises(StackError, match="no server 'worker-x'"):
        registry.named("worker-x")


def test_the_api_listens_where_it_is_told_and_stays_there() -> None:
    assert Api(8123).choose_ports({}, [])["http"] == 8123
    assert Api(8124).choose_ports({"http": 8123}, [])["http"] == 8124
    assert Api().choose_ports({"http": 8123}, [])["http"] == 8123


def test_addresses_are_read_as_they_were_written(tmp_path: Path) -> None:
    settings = {"SHINSEN_POSTGRES": "postgresql://a:b'c d@host/db", "SHINSEN_SPACE": ""}
    addresses.write(tmp_path, settings)
    assert addresses.read(tmp_path) == settings
    shell = f'. {tmp_path / addresses.FILE}; printf %s "$SHINSEN_POSTGRES"'
    assert (
        subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout
        == settings["SHINSEN_POSTGRES"]
    )
    with pytest.raises(StackError, match="there is no") as failure:
        addresses.read(tmp_path / "elsewhere")
    assert "make stack" in failure.value.todo


def test_one_process_runs_a_stack(tmp_path: Path) -> None:
    with holding(tmp_path):
        other = [sys.executable, "-m", "ops.stack", "run", "--data", str(tmp_path), "--port", "0"]
        done = subprocess.run(other, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"runs already (process {os.getpid()})" in done.stderr and "make stack-down" in done.stderr
    assert holder(tmp_path) is None and not end_holder(tmp_path)


def test_a_taken_port_of_the_api_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "ops.stack", "run", "--data", str(tmp_path), "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"port {port}" in done.stderr and "make stack PORT=" in done.stderr
    assert "nothing ran" in done.stdout and servers.endpoints(tmp_path) == {}
