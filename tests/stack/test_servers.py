"""The five default servers, for real: start, ask, kill, start again, stop."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from ops.stack import process, registry, servers, state
from ops.stack.__main__ import main
from ops.stack.errors import StackError

from .rounds import ROUNDS, TEXT, TOPIC

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]
NAMES = list(registry.DEFAULT)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory with all five servers, each with one thing written to it."""
    directory = tmp_path_factory.mktemp("stack")
    # Fetching is not part of what is timed; on a fresh machine it builds Weaviate, which takes minutes.
    servers.fetch()
    try:
        for name, endpoint in servers.start(NAMES, directory).items():
            ROUNDS[name].write(endpoint)
        yield directory
    finally:
        servers.purge(directory)


@pytest.mark.parametrize("name", NAMES)
def test_answers_a_real_request(data: Path, name: str) -> None:
    assert ROUNDS[name].read(servers.endpoint(name, data)) == TEXT


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("name", NAMES)
def test_comes_back_on_its_port_with_its_data(data: Path, name: str, number: signal.Signals) -> None:
    before = servers.endpoint(name, data)
    servers.kill(name, data, number)
    with pytest.raises(StackError, match=f"{name} does not run"):
        servers.endpoint(name, data)
    assert {row.name: row.condition for row in servers.status(data)}[name] == "dead"

    after = servers.start([name], data)[name]

    assert after.ports == before.ports
    assert after.pid != before.pid
    assert ROUNDS[name].read(after) == TEXT


def test_the_others_go_on_while_one_is_away(data: Path) -> None:
    servers.kill("fuseki", data)
    others = [name for name in NAMES if name != "fuseki"]
    assert all(ROUNDS[name].read(servers.endpoint(name, data)) == TEXT for name in others)
    servers.start(["fuseki"], data)


def test_a_start_leaves_running_servers_alone(data: Path) -> None:
    before = servers.endpoints(data)
    assert servers.start(NAMES, data) == before


def test_a_frozen_server_is_seen_and_thawed(data: Path) -> None:
    servers.kill("oxigraph", data, signal.SIGSTOP)
    assert {row.name: row.condition for row in servers.status(data)}["oxigraph"] == "not answering"
    servers.kill("oxigraph", data, signal.SIGCONT)
    assert {row.name: row.condition for row in servers.status(data)}["oxigraph"] == "healthy"


async def test_kafka_creates_no_topic_by_mention(data: Path) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers.endpoint("kafka", data).url)
    await admin.start()
    try:
        await admin.describe_topics(["never-created"])
        assert "never-created" not in await admin.list_topics()
    finally:
        await admin.close()


def test_a_second_stack_runs_side_by_side(data: Path, tmp_path: Path) -> None:
    try:
        second = servers.start(["postgres", "oxigraph"], tmp_path)
        first = servers.endpoints(data)
        assert all(first[name].port != endpoint.port for name, endpoint in second.items())
        with psycopg.connect(second["postgres"].url) as link:
            assert link.execute("SELECT to_regclass('notes')").fetchone() == (None,)
    finally:
        servers.purge(tmp_path)
    assert not tmp_path.exists()


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    servers.start(["oxigraph"], tmp_path)
    servers.stop(None, tmp_path)
    store = tmp_path / "oxigraph" / "store"
    store.rename(store.with_name("kept"))
    store.write_text("no directory")

    with pytest.raises(StackError, match="ended while it was starting") as failure:
        servers.start(["oxigraph"], tmp_path)

    assert failure.value.log is not None
    assert str(failure.value.log) in str(failure.value)
    assert servers.endpoints(tmp_path) == {}


def test_stop_leaves_no_process_and_the_next_start_finds_the_data(data: Path) -> None:
    pids = {name: endpoint.pid for name, endpoint in servers.endpoints(data).items()}
    homes = [Path(record.home) for record in state.load(data).values()]
    assert set(pids) == set(NAMES)

    assert set(servers.stop(None, data)) == set(NAMES)

    assert [pid for pid in pids.values() if process.born(pid) is not None] == []
    assert _processes_in(homes) == []
    assert servers.stop(None, data) == []
    rows = json.loads((data / state.FILE).read_text())
    assert all(row["process"] is None for row in rows.values())
    for name, endpoint in servers.start(NAMES, data).items():
        assert ROUNDS[name].read(endpoint) == TEXT


def _processes_in(homes: list[Path]) -> list[str]:
    """Processes that work in one of the folders: each server and its children do."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            cwd = (entry / "cwd").readlink()
        except OSError:
            continue
        if int(entry.name) != os.getpid() and any(cwd.is_relative_to(home) for home in homes):
            found.append(f"{entry.name} {cwd}")
    return found


def test_kafkas_own_tools_reach_it(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["kafka", "--data", str(data), "kafka-topics", "--list"]) == 0
    assert TOPIC in capfd.readouterr().out.split()
