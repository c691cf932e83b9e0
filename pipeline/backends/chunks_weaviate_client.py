"""The connection to Weaviate, and its errors in our words."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]
import httpx
import msgspec
import weaviate
from weaviate.classes.init import AdditionalConfig, Timeout
from weaviate.exceptions import WeaviateBaseError

from pipeline.errors import BackendUnavailable, InvalidConfiguration

DEFAULT_GRPC_PORT = 50051
_OTHER_LENGTH = ("vector lengths don't match", "vector dimensions do not match", "vector with length")


class WeaviateAddress(msgspec.Struct, frozen=True):
    """Where Weaviate is: `http://host:8080`, and `host:port` of gRPC (the same host's 50051 when empty)."""

    url: str
    grpc: str = ""
    timeout_s: float = 30.0
    """For a query; writes may take three times as long."""


class WeaviateConnection:
    """One client, connected at its first use. Safe to share between tasks of one event loop."""

    def __init__(self, address: WeaviateAddress) -> None:
        self.address = address
        self._client = _client(address)
        self._lock = asyncio.Lock()
        self._closed = False

    async def client(self) -> weaviate.WeaviateAsyncClient:
        """Return the connected client. Raises BackendUnavailable."""
        if self._closed:
            raise BackendUnavailable(f"Weaviate at {self.address.url}: the index is closed; open it again")
        if not self._client.is_connected():
            async with self._lock:
                if not self._client.is_connected():
                    await self._connect()
        return self._client

    async def _connect(self) -> None:
        try:
            with answering(self.address.url):
                await self._client.connect()
        except BackendUnavailable:
            await self._client.close()  # or the next try would take a half-open client for a connected one
            raise

    async def close(self) -> None:
        """Let go; idempotent."""
        self._closed = True
        await self._client.close()


def _client(address: WeaviateAddress) -> weaviate.WeaviateAsyncClient:
    at = urlsplit(address.url)
    if at.scheme not in ("http", "https") or not at.hostname:
        raise InvalidConfiguration(f"SHINSEN_WEAVIATE is {address.url!r}; write it like http://host:8080")
    host, _, port = (address.grpc or f"{at.hostname}:{DEFAULT_GRPC_PORT}").rpartition(":")
    if not host or not port.isdecimal() or (host, int(port)) == (at.hostname, at.port):
        raise InvalidConfiguration(
            f"SHINSEN_WEAVIATE_GRPC is {address.grpc!r}; write it like host:50051, another port than HTTP's"
        )
    secure = at.scheme == "https"
    return weaviate.use_async_with_custom(
        http_host=at.hostname,
        http_port=at.port or (443 if secure else 80),
        http_secure=secure,
        grpc_host=host,
        grpc_port=int(port),
        grpc_secure=secure,
        skip_init_checks=True,  # one of them asks pypi.org for the client's newest version
        additional_config=AdditionalConfig(
            timeout=Timeout(init=10, query=address.timeout_s, insert=3 * address.timeout_s)
        ),
    )


@contextmanager
def answering(url: str) -> Iterator[None]:
    """Turn what the client raises into BackendUnavailable, or InvalidConfiguration for vectors of another length."""
    try:
        yield
    except (WeaviateBaseError, grpc.RpcError, httpx.HTTPError, OSError) as error:
        raise refusal(url, str(error) or type(error).__name__) from error


def refusal(url: str, text: str) -> BackendUnavailable | InvalidConfiguration:
    """Return the error for what Weaviate said."""
    if any(words in text for words in _OTHER_LENGTH):
        return InvalidConfiguration(
            f"Weaviate at {url}: vectors of another length than the index holds; another embedding model "
            f"needs a new generation: run `shinsen replay` ({text[:300]})"
        )
    return BackendUnavailable(f"Weaviate at {url}: {text[:500]}; check that it runs and is reachable")
