"""A real model server on loopback: deterministic scores from the bigrams two texts share, or answers that misbehave."""

import json
import random
import threading
import time
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str, dict[str, Any]], tuple[int, Any]]
"""From path and request to status and body; bytes go out as they are."""


def bigrams(text: str) -> set[str]:
    return {text[n : n + 2] for n in range(len(text) - 1)}


def shared(query: str, text: str) -> float:
    """Share of the query's bigrams that the text holds."""
    asked = bigrams(query)
    return len(asked & bigrams(text)) / (len(asked) or 1)


def model(path: str, request: dict[str, Any]) -> tuple[int, Any]:
    """Answer in each shape; results best first, as servers give them."""
    if path in ("/v1/rerank", "/v2/rerank"):
        rows = [(shared(request["query"], text), n) for n, text in enumerate(request["documents"])]
        return 200, {"results": [{"index": n, "relevance_score": s} for s, n in sorted(rows, reverse=True)]}
    if path == "/rerank":
        if len(request["texts"]) > 32:
            return 413, {"error": "batch size > maximum allowed batch size 32"}
        rows = [(shared(request["query"], text), n) for n, text in enumerate(request["texts"])]
        return 200, [{"index": n, "score": s} for s, n in sorted(rows, reverse=True)]
    if path == "/v1/chat/completions":
        asked = json.loads(request["messages"][1]["content"])
        grades = [
            {"n": one["n"], "grade": min(3, int(4 * shared(asked["question"], one["text"])))}
            for one in asked["passages"]
        ]
        return 200, completion({"grades": grades})
    if path == "/embed_sparse":
        return 200, [[{"index": t, "value": v} for t, v in hashed(text).items()] for text in request["inputs"]]
    if path == "/v1/multi-vector":
        data = [{"index": n, "embeddings": vectors(t, request["dimensions"])} for n, t in enumerate(request["input"])]
        return 200, {"data": data[::-1]}
    return 404, {"error": "no such path"}


def hashed(text: str) -> dict[int, float]:
    """A weight of 1 for each bigram, at its hash."""
    return {zlib.crc32(one.encode("utf-8", "replace")) % 30_000: 1.0 for one in sorted(bigrams(text))}


def vectors(text: str, dimensions: int) -> list[list[float]]:
    """A vector for each bigram, drawn from its hash."""
    drawn = [random.Random(one) for one in sorted(bigrams(text)) or [text]]
    return [[one.gauss(0, 1) for _ in range(dimensions)] for one in drawn[:64]]


def completion(content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]}


class ModelHttp:
    """The running server; `answer` may be replaced, and it keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Answer = model
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.authorization: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, request))
                outer.authorization.append(self.headers["Authorization"])
                status, body = outer.answer(self.path, request)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    if 300 <= status < 400:
                        self.send_header("Location", f"{outer.url}/elsewhere")
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass  # the client gave up

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def slow(path: str, request: dict[str, Any]) -> tuple[int, Any]:
    time.sleep(1.5)
    return model(path, request)
