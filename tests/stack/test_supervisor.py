"""What ends by itself is started again, after growing pauses, as long as it is no use. With Oxigraph: it is quick."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.stack import process, registry, servers, state
from ops.stack.process import Launch
from ops.stack.programs import WRONG_CONFIGURATION, Worker
from ops.stack.server import Site
from ops.stack.supervisor import FIRST_PAUSE_S, LONGEST_PAUSE_S, MANY_DEATHS, STEADY_S, Supervisor

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]


class Watched:
    """A supervisor over one Oxigraph, with a clock that the test moves and the messages that it gave."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, 0.0
        self.said: list[str] = []
        self.supervisor = Supervisor([registry.named("oxigraph")], folder, self.said.append, lambda: self.now)

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.supervisor.tick()

    def pid(self) -> int | None:
        record = state.load(self.folder)["oxigraph"].process
        return record.pid if record is not None and process.alive(record) else None

    def wait_dead(self) -> None:
        assert process.wait_until(lambda: self.pid() is None, 30)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    servers.start(["oxigraph"], tmp_path)
    yield Watched(tmp_path)
    servers.purge(tmp_path)


def test_a_killed_server_comes_back_after_a_pause(watched: Watched) -> None:
    watched.tick()
    assert watched.said == []
    before = watched.pid()
    servers.kill("oxigraph", watched.folder, signal.SIGKILL)

    watched.tick()
    assert watched.pid() is None and "was killed (9)" in watched.said[0] and "again in 1 s" in watched.said[0]
    watched.tick(FIRST_PAUSE_S / 2)
    assert watched.pid() is None
    watched.tick(FIRST_PAUSE_S)

    assert watched.pid() not in (None, before)
    server = registry.named("oxigraph")
    site = servers.site_of(server, watched.folder)
    assert process.wait_until(lambda: server.healthy(site), 30)
    assert watched.supervisor.given_up == []


def test_pauses_grow_and_a_long_life_forgets_them(watched: Watched) -> None:
    for expected in (1, 2, 4):
        servers.kill("oxigraph", watched.folder, signal.SIGKILL)
        watched.tick()
        assert f"again in {expected} s" in watched.said[-1]
        watched.tick(expected)
        assert watched.pid() is not None
    watched.tick(STEADY_S + 1)
    servers.kill("oxigraph", watched.folder, signal.SIGKILL)
    watched.tick()
    assert "again in 1 s" in watched.said[-1]


def test_what_always_dies_is_tried_for_ever_and_said_with_its_log(watched: Watched) -> None:
    """A store may be away for an hour: what comes back by itself needs nobody."""
    servers.stop(["oxigraph"], watched.folder)
    store = watched.folder / "oxigraph" / "store"
    store.rename(store.with_name("kept"))
    store.write_text("no directory")
    for _ in range(MANY_DEATHS + 2):
        watched.tick()
        watched.tick(LONGEST_PAUSE_S)
        watched.wait_dead()

    assert watched.supervisor.given_up == []
    ends = [said for said in watched.said if "starts again in" in said]
    assert [said.count("\n") > 0 for said in ends] == [True] * MANY_DEATHS + [False] * 2
    assert "10 times in a row" in ends[MANY_DEATHS - 1] and "Next: " in ends[MANY_DEATHS - 1]
    assert str(watched.folder / "logs" / "oxigraph.log") in ends[-1] and "again in 30 s" in ends[-1]

    store.unlink()
    store.with_name("kept").rename(store)
    watched.tick()
    watched.tick(LONGEST_PAUSE_S)
    server = registry.named("oxigraph")
    assert process.wait_until(lambda: server.healthy(servers.site_of(server, watched.folder)), 30)


class Refusing(Worker):
    """A worker whose configuration is wrong until somebody mends it."""

    def launch(self, site: Site) -> Launch:
        refuses = f"import os, sys, time; os.path.exists('mended') or sys.exit({WRONG_CONFIGURATION}); time.sleep(60)"
        return Launch([sys.executable, "-c", refuses], cwd=site.home.parent)


def test_what_is_configured_wrongly_is_given_up_until_somebody_starts_it(tmp_path: Path) -> None:
    worker, said = Refusing(1), list[str]()
    supervisor = Supervisor([worker], tmp_path, said.append)
    try:
        servers.start_these([worker], tmp_path, wait=False)
        assert process.wait_until(lambda: not alive(tmp_path, worker.name), 30)
        for _ in range(3):
            supervisor.tick()
        assert supervisor.given_up == [worker.name]
        assert len(said) == 1 and "its configuration is wrong" in said[0] and "Next: " in said[0]
        (tmp_path / "mended").touch()
        servers.start_these([worker], tmp_path, wait=False)
        supervisor.tick()
        assert supervisor.given_up == []
    finally:
        servers.purge(tmp_path)


def alive(folder: Path, name: str) -> bool:
    record = state.load(folder)[name].process
    return record is not None and process.alive(record)
