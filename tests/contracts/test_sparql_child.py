"""The query process by itself: it cannot reach a network and does not outlive its limit or its parent."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pyoxigraph as ox
import pytest

from pipeline.backends.sparql_child import READY, Request, Response
from pipeline.backends.sparql_pool import SparqlPool
from pipeline.errors import BackendUnavailable, InvalidQuery, QueryTimeout
from tests.contracts.graph_queries import CSV, ENDLESS, JSON

ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
Child = subprocess.Popen[bytes]


@pytest.fixture
def store(tmp_path: Path) -> str:
    node = ox.NamedNode("urn:shinsen:class:a")
    full = ox.Store(tmp_path / "store")
    full.extend(ox.Quad(node, node, ox.Literal(n), node) for n in range(40))
    full.backup(tmp_path / "copy")
    return str(tmp_path / "copy")


def start() -> Child:
    command = [sys.executable, "-m", "pipeline.backends.sparql_child"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
    assert receive(child) == READY
    return child


def send(child: Child, request: Request) -> None:
    assert child.stdin
    data = msgspec.msgpack.encode(request)
    child.stdin.write(len(data).to_bytes(4, "big") + data)
    child.stdin.flush()


def receive(child: Child) -> bytes:
    assert child.stdout
    return child.stdout.read(int.from_bytes(child.stdout.read(4), "big"))


def test_it_answers_and_ends_with_its_parent(store: str) -> None:
    child = start()
    send(child, Request("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", store, None, CSV, 1_000))
    assert msgspec.msgpack.decode(receive(child), type=Response).result.split() == [b"n", b"40"]
    assert child.stdin
    child.stdin.close()
    assert child.wait(5) == 0


def test_it_kills_itself_after_its_limit(store: str) -> None:
    child = start()
    send(child, Request(ENDLESS, store, None, JSON, 1_000, seconds=0.1))
    assert child.wait(10) == -signal.SIGALRM


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_the_kernel_refuses_it_sockets() -> None:
    code = (
        "import socket\nfrom pipeline.backends.sparql_child import _refuse_sockets\n_refuse_sockets()\n"
        "try:\n    socket.socket()\nexcept PermissionError:\n    print('refused', end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, check=True)
    assert done.stdout == b"refused"


async def test_check_alone_needs_no_store() -> None:
    pool = SparqlPool(1)
    await pool.check("SELECT * { ?s ?p ?o }", 20)
    with pytest.raises(InvalidQuery):
        await pool.check("SELECT * { ?s ?p ", 20)
    await pool.close()
    with pytest.raises(BackendUnavailable):
        await pool.check("ASK {}", 20)


async def test_waiting_for_a_process_counts_as_time(store: str) -> None:
    pool = SparqlPool(1)
    await pool.check("ASK {}", 20)

    async def run(seconds: float) -> bytes:
        return await pool.run(ENDLESS, store, None, accept=JSON, max_bytes=1_000, timeout_s=seconds)

    results = await asyncio.gather(run(0.6), run(0.2), return_exceptions=True)
    assert [type(result) for result in results] == [QueryTimeout, QueryTimeout]
    assert "free" in str(results[1])
    await pool.close()


async def test_a_query_that_breaks_its_process_is_the_askers_fault_and_the_next_works(store: str) -> None:
    pool = SparqlPool(1)
    with pytest.raises(InvalidQuery):
        await pool.run(
            "SELECT * { ?s ?p ?o FILTER(" + "!" * 15_000 + "1) }", store, None, accept=JSON, max_bytes=9, timeout_s=60
        )
    assert await pool.run("ASK {}", store, [], accept=JSON, max_bytes=1_000, timeout_s=20)
    await pool.close()
