"""A model behind HTTP that takes and gives JSON: bounded in time, tries and bytes; its key is in no error or log."""

import asyncio
import re
import ssl
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from pipeline.errors import BackendUnavailable, InvalidConfiguration, ModelFailed
from pipeline.text.embeddable import embeddable

MOST_BYTES = 4 << 20
"""Of one answer."""
_RETRIES = 2
_FIRST_WAIT_S = 0.05
"""Doubled before each further try; all tries share the caller's budget."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_ADVICE = {401: "check its key", 403: "check its key", 404: "check its address", 413: "its limits are too low"}
_VERSIONED = re.compile(r"/v\d+$")


class ModelServer:
    """One server. Connects at the first request; follows no redirect, so that the key goes nowhere else.

    The client is made here already: reading the certificates takes longer than a search may wait.
    """

    def __init__(self, name: str, url: str, api_key: str = "", *, most_bytes: int = MOST_BYTES) -> None:
        """Take its name for people and its address. Raises InvalidConfiguration for an address that is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidConfiguration(f"the address of the {name} must be http(s)://host[:port][/path]")
        if "@" in parts.netloc:
            raise InvalidConfiguration(f"the address of the {name} holds a password; give it as the key instead")
        self._name, self._url, self._most = name, url.rstrip("/"), most_bytes
        headers = {"Content-Type": "application/json"}
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = httpx.AsyncClient(headers=headers, verify=_tls(), timeout=None)  # noqa: S113 - `post` bounds each

    def versioned(self, version: str) -> str:
        """Return what stands between the address and a path: nothing where the address ends with a version itself."""
        return "" if _VERSIONED.search(self._url) else version

    async def post(self, path: str, body: Any, budget_s: float) -> bytes:
        """Return the answer's bytes.

        Raises BackendUnavailable when none comes within the budget, ModelFailed when the server refuses the request or
        answers too much. What may pass (busy, restarting, connection lost) is tried again.
        """
        try:
            async with asyncio.timeout(budget_s):
                return await self._tried(path, msgspec.json.encode(body))
        except TimeoutError:
            raise self.unavailable(f"no answer within {budget_s:g} s") from None

    async def _tried(self, path: str, body: bytes) -> bytes:
        for tries in range(_RETRIES + 1):
            try:
                status, answer = await self._sent(path, body)
            except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client was closed under us
                why = f"{type(error).__name__}; check that it runs"
            else:
                if status < 300:
                    return answer
                if status not in _PASSING:
                    raise self.failed(f"status {status}; {_ADVICE.get(status, 'look at its log')}")
                why = f"status {status}; look at its log"
            if tries < _RETRIES:
                await asyncio.sleep(_FIRST_WAIT_S * 2**tries)
        raise self.unavailable(f"{why} (tried {_RETRIES + 1} times)")

    async def _sent(self, path: str, body: bytes) -> tuple[int, bytes]:
        async with self._http.stream("POST", self._url + path, content=body) as response:
            if response.status_code >= 300:  # what it says of it may quote the key or the texts
                return response.status_code, b""
            answer = bytearray()
            async for part in response.aiter_bytes():
                answer += part
                if len(answer) > self._most:
                    raise self.failed(f"it answered more than {self._most} bytes")
            return response.status_code, bytes(answer)

    def unavailable(self, why: str) -> BackendUnavailable:
        """Return the error for a server that does not answer."""
        return BackendUnavailable(f"{self._name} at {self._url}: {why}")

    def failed(self, why: str) -> ModelFailed:
        """Return the error for an answer that is none."""
        return ModelFailed(f"{self._name} at {self._url}: {why}")

    async def close(self) -> None:
        """Close the connections; idempotent."""
        await self._http.aclose()


@cache
def _tls() -> ssl.SSLContext:
    """Return what all servers share: the certificates, read once."""
    return httpx.create_ssl_context()


def sendable(text: str, characters: int) -> str:
    """Return the beginning of a text as servers take it: never empty, nothing that JSON cannot hold."""
    return embeddable(text[:characters]).strip() or " "


def decoded(server: ModelServer, answer: bytes, shape: Any) -> Any:
    """Read an answer. Raises ModelFailed for another shape (NaN is none of JSON's numbers)."""
    try:
        return msgspec.json.decode(answer, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise server.failed(
            "its answer has another shape than expected; check that it is this kind of server"
        ) from None
