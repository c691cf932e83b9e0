"""Start, kill, restart and stop the servers of one data directory."""

import os
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ops.stack import ports, process, registry, state
from ops.stack.errors import StackError
from ops.stack.fetch import Fetcher, default_cache
from ops.stack.registry import DEFAULT
from ops.stack.server import Endpoint, Server, Site

# These do not end a process at once or at all.
NOT_ENDING = {signal.SIGSTOP, signal.SIGCONT, signal.SIGTSTP, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}


@dataclass(frozen=True)
class Status:
    """One server of a data directory, as it is now."""

    name: str
    # "healthy", "not answering", "dead" (ended without being asked) or "stopped".
    condition: str
    endpoint: Endpoint | None
    log: Path


def fetch(names: Sequence[str] = DEFAULT, *, cache: Path | None = None, install: bool | None = None) -> None:
    """Bring the servers' programs onto this machine; `install` (default: in CI) lets apt-get install packages."""
    fetcher = Fetcher(cache or default_cache(), install=_in_ci() if install is None else install)
    for server in registry.plan(names):
        server.fetch(fetcher)


def start(
    names: Sequence[str] = DEFAULT,
    data_dir: Path = Path(".stack"),
    *,
    cache: Path | None = None,
    install: bool | None = None,
) -> dict[str, Endpoint]:
    """Start the servers, and those that they require, and wait until they answer.

    What is missing is fetched first. A server that runs already is left as it is. A server that was
    stopped or killed comes back on the same ports with the same data. When one of them fails, those that
    this call had started are stopped again and `StackError` is raised.
    """
    plan = registry.plan(names)
    fetch(names, cache=cache, install=install)
    return start_these(plan, data_dir, cache=cache)


def start_these(
    plan: Sequence[Server], data_dir: Path, *, cache: Path | None = None, wait: bool = True
) -> dict[str, Endpoint]:
    """The same for servers that are there already, whose requirements run; `wait=False` returns before they answer."""
    data_dir = data_dir.resolve()
    state.open_directory(data_dir)
    with state.locked(data_dir / "operation.lock"):
        started: list[str] = []
        try:
            for wave in registry.waves(plan):
                for server in wave:
                    if _launch(server, data_dir, cache or default_cache()):
                        started.append(server.name)
                if wait:
                    _await_ready(wave, data_dir, cache or default_cache())
        except BaseException:
            _stop(started, data_dir)
            raise
    return {server.name: endpoint(server.name, data_dir) for server in plan}


def stop(names: Sequence[str] | None, data_dir: Path) -> list[str]:
    """Stop the named servers (None: all of the data directory) and return those that ran; data and ports stay."""
    data_dir = data_dir.resolve()
    if not (data_dir / state.FILE).exists():
        return []
    with state.locked(data_dir / "operation.lock"):
        chosen = list(state.load(data_dir)) if names is None else [registry.named(name).name for name in names]
        return _stop(chosen, data_dir)


def kill(name: str, data_dir: Path, number: signal.Signals = signal.SIGKILL, *, wait_s: float = 30.0) -> None:
    """Send a signal to a running server, and wait for its end when the signal should end it."""
    data_dir = data_dir.resolve()
    running = endpoint(name, data_dir)
    record = state.load(data_dir)[name]
    if record.process is None or not process.send(record.process, number):
        raise StackError(f"{name} ended by itself", log=running.log, todo="see its log, then start it again")
    if number in NOT_ENDING:
        return
    target = record.process
    if not process.wait_until(lambda: not process.alive(target), wait_s):
        todo = "send SIGKILL, or SIGCONT first when it is frozen"
        raise StackError(f"{name} still runs {wait_s:.0f} s after {number.name}", log=running.log, todo=todo)


def purge(data_dir: Path) -> None:
    """Stop all servers of a data directory and delete it with all data."""
    data_dir = data_dir.resolve()
    stop(None, data_dir)
    for record in state.load(data_dir).values():
        shutil.rmtree(record.home, ignore_errors=True)
    # Only what `start` has made: a folder given by mistake must not lose anything else.
    if (data_dir / state.FILE).exists():
        shutil.rmtree(data_dir)


def endpoint(name: str, data_dir: Path) -> Endpoint:
    """How to reach a server that runs; raises when it does not."""
    data_dir = data_dir.resolve()
    server = registry.named(name)
    record = state.load(data_dir).get(name)
    if record is None or record.process is None or not process.alive(record.process):
        todo = f"start it: python -m ops.stack up {name} --data {data_dir}"
        raise StackError(f"{name} does not run", log=Path(record.log) if record else None, todo=todo)
    site = _site(server, data_dir, default_cache())
    pid = record.process.pid
    return Endpoint(name, server.url(site), site.ports, pid, site.home, site.log, server.urls(site))


def endpoints(data_dir: Path) -> dict[str, Endpoint]:
    """All servers of the data directory that run now."""
    return {row.name: row.endpoint for row in status(data_dir, probe=False) if row.endpoint is not None}


def status(data_dir: Path, *, probe: bool = True) -> list[Status]:
    """The condition of each server that was ever started in the data directory."""
    data_dir = data_dir.resolve()
    rows = []
    for name, record in state.load(data_dir).items():
        running = record.process is not None and process.alive(record.process)
        condition = "healthy" if running else "dead" if record.process is not None else "stopped"
        if running and probe and not _healthy(name, data_dir):
            condition = "not answering"
        rows.append(Status(name, condition, endpoint(name, data_dir) if running else None, Path(record.log)))
    return rows


def _in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"true", "1"}


def site_of(server: Server, data_dir: Path) -> Site:
    """Where a server that was once started lives."""
    return _site(server, data_dir.resolve(), default_cache())


def _healthy(name: str, data_dir: Path) -> bool:
    server = registry.named(name)
    return server.healthy(site_of(server, data_dir))


def _site(server: Server, data_dir: Path, cache: Path) -> Site:
    records = state.load(data_dir)
    record = records[server.name]
    peers = {name: records[name].ports for name in server.requires if name in records}
    return Site(Path(record.home), cache, Path(record.log), record.ports, peers)


def _launch(server: Server, data_dir: Path, cache: Path) -> bool:
    """Start one server unless it runs; whether it was started."""
    records = state.load(data_dir)
    record = records.get(server.name)
    if record is not None and record.process is not None and process.alive(record.process):
        return False
    log = data_dir / "logs" / f"{server.name}.log"
    taken = [port for name, other in records.items() if name != server.name for port in other.ports.values()]
    chosen = server.choose_ports(record.ports if record else {}, taken)
    record = state.Record(chosen, record.home if record else str(server.choose_home(data_dir)), str(log))
    state.save(data_dir, server.name, record)
    _check_ports(server, record)
    site = _site(server, data_dir, cache)
    site.home.mkdir(parents=True, exist_ok=True)
    site.log.parent.mkdir(parents=True, exist_ok=True)
    server.prepare(site)
    born = process.spawn(server.launch(site), cwd=site.home, log=site.log)
    state.save(data_dir, server.name, replace(record, process=born))
    return True


def _check_ports(server: Server, record: state.Record) -> None:
    # The kernel may need a moment to take back the ports of a server that was just killed.
    for label, port in record.ports.items():
        if not process.wait_until(partial(ports.is_free, port), 5.0):
            raise StackError(
                f"port {port} ({label} of {server.name}) is taken by another process",
                todo=f"see which one (`ss -ltnp 'sport = :{port}'`) and stop it, or {server.other_port}",
            )


def _await_ready(wave: Sequence[Server], data_dir: Path, cache: Path) -> None:
    """Wait until each of them answers; the first that ends or is too slow is an error at once."""
    began, waiting = time.monotonic(), list(wave)
    while waiting:
        for server in list(waiting):
            site, born = _site(server, data_dir, cache), state.load(data_dir)[server.name].process
            if born is None or not process.alive(born):
                what = f"{server.name} ended while it was starting"
                raise StackError(what, log=site.log, todo="see its log for the cause, then start it again")
            if server.healthy(site):
                waiting.remove(server)
            elif time.monotonic() - began > server.ready_s:
                what = f"{server.name} runs but has not answered within {server.ready_s:.0f} s"
                raise StackError(what, log=site.log, todo="see its log; a busy machine may only need another try")
        time.sleep(process.POLL_S if waiting else 0)


def _stop(names: Iterable[str], data_dir: Path) -> list[str]:
    """Stop servers, dependents first, those of one wave side by side."""
    records, chosen = state.load(data_dir), set(names)
    running = [registry.named(name) for name, row in records.items() if name in chosen and row.process is not None]
    stopped = []
    for wave in reversed(registry.waves(running)):
        with ThreadPoolExecutor(len(wave)) as threads:
            ran = list(threads.map(lambda server: _end(server, records[server.name], data_dir), wave))
        stopped += [server.name for server, did in zip(wave, ran, strict=True) if did]
    return stopped


def _end(server: Server, record: state.Record, data_dir: Path) -> bool:
    """Stop one server; whether it ran."""
    if record.process is None:
        return False
    ran = process.alive(record.process)
    if not process.end(record.process, server.stop_signal, server.stop_s):
        todo = f"see what holds it (it may wait for a disk), then kill -9 {record.process.pid}"
        raise StackError(f"{server.name} does not end even after SIGKILL", log=Path(record.log), todo=todo)
    state.save(data_dir, server.name, replace(record, process=None))
    return ran
