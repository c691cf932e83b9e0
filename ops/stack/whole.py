"""The whole stack in the foreground: servers, topics, workers, the API; until Ctrl-C or `down`."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ops.stack import addresses, demo, ports, process, servers, state
from ops.stack.errors import StackError
from ops.stack.holder import holding
from ops.stack.programs import API_PORT, ROOT, Api, Worker
from ops.stack.registry import named, plan
from ops.stack.server import Endpoint, Server
from ops.stack.supervisor import Supervisor
from ops.stack.tools import run_logged

BASE = ("weaviate", "kafka", "postgres")
TICK_S = 1.0
TOPICS_TIMEOUT_S = 120


@dataclass(frozen=True)
class Wanted:
    """What to start, and where."""

    data_dir: Path
    cache: Path
    sparql: str = addresses.SPARQL[0]
    workers: int = 2
    port: int = API_PORT
    connect: bool = True
    install: bool | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The servers that our own programs need."""
        return (*BASE, self.sparql)

    @property
    def beside(self) -> tuple[str, ...]:
        """What starts beside them."""
        return ("connect",) if self.connect else ()


def run(wanted: Wanted) -> int:
    """Start everything, look after it until SIGINT or SIGTERM, stop it; 1 when something had been given up."""
    data_dir = wanted.data_dir.resolve()
    with holding(data_dir), _interruptible():
        try:
            members = _start(wanted, data_dir)
            return _watch(members, data_dir)
        finally:
            _stop(data_dir)


def _start(wanted: Wanted, data_dir: Path) -> list[Server]:
    _check_port(wanted.port, data_dir)
    times = [time.monotonic()]

    def lap() -> float:
        times.append(time.monotonic())
        return times[-1] - times[-2]

    _say(f"starting {', '.join((*wanted.names, *wanted.beside))}; logs in {data_dir / 'logs'}")
    servers.fetch((*wanted.names, *wanted.beside), cache=wanted.cache, install=wanted.install)
    fetched = lap()
    running = servers.start(wanted.names, data_dir, cache=wanted.cache, install=wanted.install)
    up = lap()
    settings = addresses.addresses(running, wanted.sparql) | demo.configuration()
    addresses.write(data_dir, settings)
    _create_topics(data_dir, settings)
    created = lap()
    ours: list[Server] = [*(Worker(number + 1) for number in range(wanted.workers)), Api(wanted.port)]
    programs = [*(named(name) for name in wanted.beside), *ours]
    running |= servers.start_these(programs, data_dir, cache=wanted.cache)
    started = lap()
    for endpoint in running.values():
        _say(f"  {endpoint.name:<10} {endpoint.url:<52} pid {endpoint.pid:<7} {endpoint.log}")
    _say(
        f"ready in {times[-1] - times[0]:.1f} s: programs fetched {fetched:.1f}, servers {up:.1f}, "
        f"topics {created:.1f}, workers and API {started:.1f}"
    )
    _say(_next_commands(running["api"], data_dir))
    return [*plan(wanted.names), *programs]


def _check_port(port: int, data_dir: Path) -> None:
    """Before minutes of fetching and starting: the one port that is not chosen by us."""
    record = state.load(data_dir).get(Api.name)
    if record is not None and record.process is not None and process.alive(record.process):
        return  # our own, left behind by a runner that was killed: it is taken over
    if not process.wait_until(lambda: ports.is_free(port), 2.0):
        todo = f"see by whom (`ss -ltnp 'sport = :{port}'`) and stop it, or {Api.other_port}"
        raise StackError(f"port {port}, where the API shall listen, is taken", todo=todo)


def _create_topics(data_dir: Path, settings: dict[str, str]) -> None:
    run_logged(
        [sys.executable, "-m", "pipeline.agents", "create-topics"],
        log=data_dir / "logs" / "create-topics.log",
        timeout=TOPICS_TIMEOUT_S,
        env=settings,
        cwd=ROOT,
        todo="see the log; topics of an older version can be dropped with all data: make stack-down ARGS=--purge",
    )


def _watch(members: Sequence[Server], data_dir: Path) -> int:
    supervisor = Supervisor(members, data_dir, _say)
    try:
        while True:
            time.sleep(TICK_S)
            supervisor.tick()
    except KeyboardInterrupt:
        return 1 if supervisor.given_up else 0


def _stop(data_dir: Path) -> None:
    # What is under way now is bounded in time; a second Ctrl-C would leave servers behind.
    signal.signal(signal.SIGINT, lambda *_: _say("stopping already; a server gets up to half a minute"))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    began = time.monotonic()
    stopped = servers.stop(None, data_dir)
    _say(f"stopped in {time.monotonic() - began:.1f} s: {', '.join(stopped) or 'nothing ran'}; data stay in {data_dir}")


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM and a closed terminal end everything in order, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _next_commands(api: Endpoint, data_dir: Path) -> str:
    shinsen, where = f"{Path(sys.executable).parent}/shinsen", f"--url {api.url}"
    file = addresses.FILE
    rows = [
        ("make stack-demo", "publish the demo corpus through the topic of events, and ask its question"),
        (f"{shinsen} status --watch {where}", "lag, freshness, dead letters, as they change"),
        (f"{shinsen} ask '質問' {where}", "ask; the console is at " + api.url),
        (f". {data_dir / file}", "the addresses of all servers, as settings"),
        ("make stack-down", "stop, as Ctrl-C here does; data stay"),
    ]
    shown = [(_short(command), what) for command, what in rows]
    width = max(len(command) for command, _ in shown)
    return "\n".join(["Next, in another terminal:", *(f"  {command:<{width}}  {what}" for command, what in shown)])


def _say(text: str) -> None:
    print(_short(text), flush=True)


def _short(text: str) -> str:
    """Paths below the present folder as one would type them."""
    return text.replace(f"{Path.cwd()}{os.sep}", "")
