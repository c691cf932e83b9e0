"""What ends by itself is started again, after growing pauses, and not for ever. With Oxigraph: it is quick."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.stack import process, registry, servers, state
from ops.stack.supervisor import FIRST_PAUSE_S, LONGEST_PAUSE_S, MOST_DEATHS, STEADY_S, Supervisor

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


def test_what_always_dies_is_given_up_and_said_with_its_log(watched: Watched) -> None:
    servers.stop(["oxigraph"], watched.folder)
    store = watched.folder / "oxigraph" / "store"
    store.rename(store.with_name("kept"))
    store.write_text("no directory")
    for _ in range(MOST_DEATHS):
        watched.tick()
        watched.tick(LONGEST_PAUSE_S)
        watched.wait_dead()
    watched.tick()

    assert watched.supervisor.given_up == ["oxigraph"]
    assert "is not started again" in watched.said[-1] and "Next: " in watched.said[-1]
    assert str(watched.folder / "logs" / "oxigraph.log") in watched.said[-1]
    number = len(watched.said)
    watched.tick(10 * LONGEST_PAUSE_S)
    assert len(watched.said) == number and watched.pid() is None

    store.unlink()
    store.with_name("kept").rename(store)
    servers.start(["oxigraph"], watched.folder)
    watched.tick()
    assert watched.supervisor.given_up == []
