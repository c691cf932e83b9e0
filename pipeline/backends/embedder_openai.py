"""Dense vectors from any OpenAI-compatible embeddings server, through the `openai` client."""

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec
import numpy as np
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

from pipeline.errors import BackendUnavailable
from pipeline.text.embeddable import embeddable
from schemas.change_event import Lane

NO_KEY = "none"
"""What a server without keys is sent: the client sends no request without one."""


class EmbeddingServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server is and how its model wants its texts."""

    base_url: str
    """With the version: `http://127.0.0.1:8000/v1`."""
    model: str
    query_model: str = ""
    """For servers that tell questions and passages apart by the model's name; `model` when empty."""
    dimensions: int
    api_key: str = NO_KEY
    query_prefix: str = ""
    """`query: ` for models of the E5 family, unless the server puts it there."""
    passage_prefix: str = ""
    batch: int = 16
    """Texts in one request."""
    parallel: int = 4
    """Requests of passages at once, both lanes together; questions are not held back by them."""
    timeout_s: float = 60.0
    retries: int = 2
    """How often a request is repeated when the server is busy or silent."""


class OpenAIEmbedder:
    """Implements `pipeline.ports.models.Embedder`. One event loop per instance; connects at the first call."""

    def __init__(self, server: EmbeddingServer) -> None:
        self._server = server
        self.model = f"{server.model}@{server.dimensions}"
        if server.query_prefix or server.passage_prefix:
            self.model += f"+{server.query_prefix}|{server.passage_prefix}"
        self.dimensions = server.dimensions
        self._client: AsyncOpenAI | None = None
        self._live, self._bulk = asyncio.Semaphore(server.parallel), asyncio.Semaphore(max(1, server.parallel // 2))

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        """Return one vector per text. Bulk work uses half of the requests at most, so that live work gets through."""
        prefixed = [_plain(self._server.passage_prefix + text) for text in texts]
        size = self._server.batch
        batches = [prefixed[at : at + size] for at in range(0, len(prefixed), size)]
        embedded = await asyncio.gather(*(self._in_lane(batch, lane) for batch in batches))
        return [vector for batch in embedded for vector in batch]

    async def query(self, text: str) -> bytes:
        """Return the vector of a question."""
        model = self._server.query_model or self._server.model
        return (await self._embed([_plain(self._server.query_prefix + text)], model))[0]

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _in_lane(self, batch: list[str], lane: Lane) -> list[bytes]:
        if lane == "bulk":
            async with self._bulk, self._live:
                return await self._embed(batch, self._server.model)
        async with self._live:
            return await self._embed(batch, self._server.model)

    async def _embed(self, texts: list[str], model: str) -> list[bytes]:
        try:
            response = await self._connected().embeddings.create(model=model, input=texts, encoding_format="float")
            rows = sorted(response.data, key=lambda row: row.index)
            vectors = np.asarray([row.embedding for row in rows], dtype="<f4")
        except OpenAIError as error:
            raise self._unavailable(_said(error)) from None  # its parts quote the request's headers
        except (AttributeError, TypeError, ValueError) as error:  # an answer of another shape
            raise self._unavailable(f"it gave no vectors ({error})") from error
        return self._checked(vectors, len(texts))

    def _checked(self, vectors: np.ndarray, expected: int) -> list[bytes]:
        """Refuse vectors of another shape or without direction; make the others unit vectors."""
        if vectors.shape != (expected, self.dimensions):
            raise self._unavailable(
                f"{expected} vectors of {self.dimensions} dimensions were expected, it gave {vectors.shape}: "
                "check SHINSEN_EMBEDDINGS_MODEL and SHINSEN_EMBEDDINGS_DIMENSIONS"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._unavailable("it gave a vector without direction")
        return [bytes(row.astype("<f4").tobytes()) for row in vectors / lengths]

    def _unavailable(self, why: str) -> BackendUnavailable:
        # Servers quote the key that they refuse, and an address may hold a password.
        at = urlsplit(self._server.base_url)
        shown = f"{at.scheme}://{at.hostname}{f':{at.port}' if at.port else ''}{at.path}"
        key = self._server.api_key
        text = why.replace(key, "***") if key and key != NO_KEY else why
        return BackendUnavailable(f"embeddings server {shown}: {text}")

    def _connected(self) -> AsyncOpenAI:
        if self._client is None:
            s = self._server
            self._client = AsyncOpenAI(
                base_url=s.base_url, api_key=s.api_key, timeout=s.timeout_s, max_retries=s.retries
            )
        return self._client


def _said(error: OpenAIError) -> str:
    """Return what happened and what to do; of a lost connection also why."""
    advice = {401: "; check SHINSEN_EMBEDDINGS_KEY", 403: "; check SHINSEN_EMBEDDINGS_KEY", 404: "; check the address"}
    status = error.status_code if isinstance(error, APIStatusError) else 0
    cause = f" ({error.__cause__})" if isinstance(error, APIConnectionError) and error.__cause__ else ""
    return f"{error}{cause}{advice.get(status, '; check that it runs')}"


def _plain(text: str) -> str:
    """Servers refuse an empty text."""
    return embeddable(text) or " "
