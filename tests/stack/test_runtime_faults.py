"""The API while a store is down or hangs: what still answers, what says 503, and that it comes back by itself."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ops.stack import servers
from ops.stack.server import Endpoint
from tests.api.conftest import MAPPINGS
from tests.api.plant import CAUSE, CORPUS, report
from tests.stack.runtime_api import prepared, serving
from tests.stack.worker import Stack

pytestmark = [pytest.mark.stack, pytest.mark.faults]

QUESTION = {"question": "Q-42の停止原因は何か。"}
QUICK_S = 4.0
"""A server that is gone is noticed at once; the rest is this machine."""
BOUNDED_S = 25.0
BACK_S = 60.0


class Broken:
    """An API over servers that may be killed, with the corpus in them and no worker."""

    def __init__(self, stack: Stack, client: httpx.AsyncClient, at: dict[str, Endpoint]) -> None:
        self.stack, self.client = stack, client
        self._folder = at["kafka"].home.parent  # PostgreSQL's home lies elsewhere: its user may not read everything

    @contextlib.asynccontextmanager
    async def down(self, name: str) -> AsyncIterator[None]:
        await asyncio.to_thread(servers.kill, name, self._folder)
        try:
            yield
        finally:
            await asyncio.to_thread(servers.start, [name], self._folder)

    @contextlib.contextmanager
    def hanging(self, name: str) -> Iterator[None]:
        """Stop a server and all its children, so that its connections stay and nothing answers."""
        pids = _family(servers.endpoint(name, self._folder).pid)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    async def ask(self, **more: Any) -> tuple[httpx.Response, float]:
        return await self.timed("POST", "/v1/query", json={**QUESTION, **more})

    async def timed(self, method: str, path: str, **given: Any) -> tuple[httpx.Response, float]:
        started = time.monotonic()
        response = await self.client.request(method, path, **given)
        took = time.monotonic() - started
        print(f"{method} {path}: {response.status_code} after {took:.2f} s")
        return response, took

    async def is_down(self, name: str) -> None:
        """Readiness names it, and since when."""
        await asyncio.sleep(1.1)  # what was seen last is kept for a second
        ready, _ = await self.timed("GET", "/health/ready")
        assert ready.status_code == 503 and ready.json()["stores"][name]["status"] == "down", ready.text
        assert f"{name} (since 20" in ready.json()["detail"] and int(ready.headers["retry-after"]) > 0

    async def is_back(self) -> None:
        """Everything answers again, and nobody had to do anything."""
        end = time.monotonic() + BACK_S
        while time.monotonic() < end:
            answer, _ = await self.ask()
            ready = await self.client.get("/health/ready")
            if answer.status_code == 200 and not answer.json()["warnings"] and ready.status_code == 200:
                assert CAUSE in answer.json()["answer"]["text"]
                return
            await asyncio.sleep(0.5)
        raise AssertionError(f"not back: {answer.text} {ready.text}")


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in _family(int(child)))]


@pytest.fixture
async def broken(breakable_server: Callable[[str], Endpoint], tmp_path: Path) -> AsyncIterator[Broken]:
    at = {name: breakable_server(name) for name in ("kafka", "postgres", "weaviate", "fuseki")}
    stack = Stack(breakable_server, "fuseki", tmp_path)
    stack.settings = stack.settings.model_copy(update={"mappings": MAPPINGS})
    await prepared(stack)
    worker = stack.start()
    async with serving(stack.settings) as (_, client):
        loaded = await client.post("/v1/events?wait=applied&timeout=60s", json=CORPUS)
        assert loaded.status_code == 200, stack.tail()
        worker.send_signal(signal.SIGTERM)
        await asyncio.to_thread(worker.wait, 60)
        yield Broken(stack, client, at)
    stack.end()


async def test_each_store_may_go_and_come_back(broken: Broken) -> None:
    await broken.is_back()
    async with broken.down("weaviate"):
        answer, took = await broken.ask()
        assert answer.status_code == 200 and took < BOUNDED_S, answer.text
        assert CAUSE in answer.json()["answer"]["text"], "graph and records answer"
        assert answer.json()["route"]["steps"][0]["outcome"] in ("error", "timeout")
        assert any("the source vector" in warning for warning in answer.json()["warnings"])
        found, took = await broken.timed("POST", "/v1/search", json={"query": "潤滑"})
        assert found.status_code == 503 and took < BOUNDED_S
        await asyncio.sleep(2)  # by now it is known to be away, and nobody tries
        answer, took = await broken.ask()
        assert CAUSE in answer.json()["answer"]["text"] and took < QUICK_S
        assert answer.json()["route"]["steps"][0]["outcome"] == "error"
        status, took = await broken.timed("GET", "/v1/status")
        assert status.json()["chunks"] is None and took < QUICK_S
        shown, _ = await broken.timed("GET", "/v1/documents/plant/reports/R1")
        assert CAUSE in shown.json()["body"]
        await broken.is_down("weaviate")
    await broken.is_back()
    async with broken.down("fuseki"):
        answer, took = await broken.ask()
        assert answer.status_code == 200 and took < BOUNDED_S and CAUSE in answer.json()["answer"]["text"]
        assert any("the graph" in warning or "graph" in warning for warning in answer.json()["warnings"])
        await broken.is_down("sparql")
    await broken.is_back()
    async with broken.down("postgres"):
        answer, took = await broken.ask()
        assert answer.status_code == 503 and took < QUICK_S and int(answer.headers["retry-after"]) > 0
        taken, _ = await broken.timed("POST", "/v1/events?wait=applied&timeout=2s", json=report("R8", "本文。"))
        assert taken.status_code == 202 and "accepted" in taken.json()["warnings"][0], taken.text
        await broken.is_down("postgres")
    await broken.is_back()
    async with broken.down("kafka"):
        refused, took = await broken.timed("POST", "/v1/events", json=report("R7", "本文。"))
        assert refused.status_code == 503 and took < BOUNDED_S and int(refused.headers["retry-after"]) > 0
        answer, _ = await broken.ask()
        assert answer.status_code == 200 and CAUSE in answer.json()["answer"]["text"], "reading needs no Kafka"
        await broken.is_down("kafka")
    await broken.is_back()
    taken, _ = await broken.timed("POST", "/v1/events", json=report("R7", "本文。"))
    assert taken.status_code == 202


async def test_a_store_that_hangs_is_not_waited_for_without_end(broken: Broken) -> None:
    await broken.is_back()
    for name in ("weaviate", "kafka", "postgres"):
        with broken.hanging(name):
            answer, took = await broken.ask()
            assert took < BOUNDED_S
            if name == "postgres":
                assert answer.status_code == 503, answer.text
            else:
                assert answer.status_code == 200 and CAUSE in answer.json()["answer"]["text"], answer.text
            if name == "kafka":
                refused, took = await broken.timed("POST", "/v1/events", json=report("R7", "本文。"))
                assert refused.status_code in (429, 503) and took < BOUNDED_S
            await broken.is_down(name)
        await broken.is_back()
