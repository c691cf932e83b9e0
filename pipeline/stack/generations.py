"""Generations as the API sees them: the live one is read from the state store for each request, and pinned for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import structlog

from pipeline.errors import BackendUnavailable
from pipeline.ports.chunk_index import ChunkIndex
from pipeline.ports.graph import Graph
from pipeline.ports.runtime import Indexes
from pipeline.ports.state import State
from pipeline.stack.away import AwayChunks

log = structlog.get_logger(__name__)


class _Open(msgspec.Struct):
    indexes: Indexes
    pins: int = 0


class StackGenerations:
    """Opens a generation's indexes at its first use, and lets go of them when it is no longer live and nobody reads it.

    Another process may promote at any moment: the next request sees it, those under way finish over what they
    pinned. One that was even removed under a request ends it with BackendUnavailable, since its manifests went
    first and an answer without them would only look like one; who removes a generation lets readers finish before.
    """

    def __init__(self, state: State, open_indexes: Callable[[str], tuple[ChunkIndex, Graph]]) -> None:
        self._state, self._open_indexes = state, open_indexes
        self._open: dict[str, _Open] = {}
        self._live = ""
        self.why_away: Callable[[], str] = lambda: ""
        """Says why the chunk index is known to be away; empty: it is not."""
        self._closing: set[asyncio.Task[None]] = set()

    async def live_name(self) -> str:
        """Return the name of the live generation, as of now. Raises BackendUnavailable when there is none yet."""
        for generation in await self._state.generations():
            if generation.state == "live":
                return generation.name
        raise BackendUnavailable("no generation is live: start a worker, or promote one")

    @asynccontextmanager
    async def pinned(self, name: str = "") -> AsyncIterator[Indexes]:
        """Hand out the indexes of the live generation, or of another one.

        Raises BackendUnavailable when it was removed meanwhile.
        """
        live = await self.live_name()
        name, self._live = name or live, live
        opened = self._opened(name)
        opened.pins += 1
        try:
            why = self.why_away()
            yield opened.indexes if not why else Indexes(name, AwayChunks(why), opened.indexes.graph)
        except Exception as error:
            await self._check_kept(name, error)  # "not found", for one, is no answer then
            raise
        else:
            await self._check_kept(name)
        finally:
            opened.pins -= 1
            self._let_go(name)

    async def _check_kept(self, name: str, because: Exception | None = None) -> None:
        if name not in {g.name for g in await self._state.generations() if g.state != "pruning"}:
            raise BackendUnavailable(
                f"the generation {name} was removed while this request read it; ask again"
            ) from because

    def _opened(self, name: str) -> _Open:
        """Return a generation's indexes; others that nobody reads, and that are not live, are closed."""
        if name not in self._open:
            chunks, graph = self._open_indexes(name)
            self._open[name] = _Open(Indexes(name, chunks, graph))
            log.info("generation_opened", generation=name)
        for other in self._open.keys() - {name}:
            self._let_go(other)
        return self._open[name]

    def _let_go(self, name: str) -> None:
        opened = self._open.get(name)
        if opened is not None and not opened.pins and name != self._live:
            del self._open[name]
            task = asyncio.ensure_future(_close(opened.indexes))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all indexes."""
        await asyncio.gather(*self._closing, *(_close(opened.indexes) for opened in self._open.values()))
        self._open.clear()


async def _close(indexes: Indexes) -> None:
    await indexes.chunks.close()
    await indexes.graph.close()
