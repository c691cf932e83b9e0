"""Writing over SPARQL: one writer at a time, and what several ask for at once in few requests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from pipeline.backends.graph_sparql_client import SparqlClient

Exclusive = Callable[[], AbstractAsyncContextManager[Callable[[], Awaitable[None]] | None]]
"""Gives what is held while writing, so that no other process writes to the same space; what it yields, if anything,
is called before each request and raises when the right was lost."""

UPDATES_PER_REQUEST, CHARACTERS_PER_REQUEST = 64, 4 << 20


class _Asked(msgspec.Struct):
    updates: list[str]
    done: asyncio.Future[None]


class GroupWriter:
    """Joins the updates of those who wait: a server commits each request to disk, which on Fuseki costs more than the
    rest of it, so that 64 documents one by one take five times as long. A request is done whole or not at all.
    """

    def __init__(self, client: SparqlClient, exclusive: Exclusive) -> None:
        self._client, self._exclusive = client, exclusive
        self._lock = asyncio.Lock()
        self._waiting: list[_Asked] = []

    async def write(self, updates: Sequence[str]) -> None:
        """Return when the server has accepted these updates, in order. Raises what the one who wrote them met."""
        if not updates:
            return
        mine = _Asked(list(updates), asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            async with self._lock:
                if not mine.done.done():
                    await self._write_all()
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)
            told = mine.done.exception() if mine.done.done() else None
        if told is not None:
            raise told

    async def _write_all(self) -> None:
        """Write what everybody waits for. Whoever is cancelled here leaves the others' work to the next."""
        asked, self._waiting = self._waiting, []
        try:
            async with self._exclusive() as confirm:
                for request in _requests([update for one in asked for update in one.updates]):
                    if confirm is not None:
                        await confirm()
                    await self._client.update(request)
        except Exception as error:  # noqa: BLE001  # each of them is told
            for one in asked:
                one.done.set_exception(error)
        except BaseException:
            self._waiting = asked + self._waiting
            raise
        else:
            for one in asked:
                one.done.set_result(None)


def _requests(updates: Sequence[str]) -> list[str]:
    joined: list[list[str]] = []
    size = 0
    for update in updates:
        full = joined and (len(joined[-1]) >= UPDATES_PER_REQUEST or size + len(update) > CHARACTERS_PER_REQUEST)
        if full or not joined:
            joined.append([])
            size = 0
        joined[-1].append(update)
        size += len(update)
    return [" ;\n".join(part) for part in joined]
