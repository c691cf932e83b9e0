"""Marks of a writer of indexes: they say who may have written what does not stand, until it is made good."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from pipeline.clock import earlier
from pipeline.errors import BackendUnavailable
from pipeline.ports.publishing import Begun
from pipeline.ports.state import State

LEASE_S = 20.0
"""Age from which on the mark of a writer is taken for left behind: its document is published again by somebody.

By the clock of the state store. A mark is at most twice `_RENEW_S` old when its writer writes, so a writer may stand
still for the rest of this between its look at the mark and the write.
"""
_RENEW_S = LEASE_S / 4
"""Age from which on a writer renews its marks before and after it writes to an index."""


class WriterMarks:
    """The marks of one applier; one batch at a time."""

    def __init__(self, state: State, generation: str, name: str, lease_s: float) -> None:
        """`name`: another one for each writer that runs at the same time."""
        self._state, self._generation, self._name = state, generation, name
        self._lease_s, self._resigned = lease_s, 0
        self._at, self._began = 0.0, ""

    @property
    def writer(self) -> str:
        """The name in the marks."""
        return f"{self._name}+{self._resigned}" if self._resigned else self._name

    @property
    def stale(self) -> str:
        """The store's time before which another writer's mark is a dead one's, for who began when this batch did."""
        return earlier(self._began, self._lease_s)

    async def begin(self, documents: Sequence[str], known: int) -> Begun:
        """See Publishing.begin."""
        self._at = asyncio.get_running_loop().time()
        begun = await self._state.begin(self._generation, documents, self.writer, known)
        self._began = begun.at
        return begun

    async def write(self, documents: Sequence[str], writes: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Write to the indexes side by side, under marks that stay fresh: nobody may take the writer for dead."""
        if not writes:
            return
        await self._renew(documents)
        writing = [asyncio.ensure_future(write()) for write in writes]
        try:
            while (await asyncio.wait(writing, timeout=_RENEW_S))[1]:
                await self._renew(documents)
        except BaseException:
            with suppress(BackendUnavailable):  # whatever ends this is to be heard; see ops/decisions/stack-stages.md
                await self._ended(documents, writing)
            raise
        for failed in await self._ended(documents, writing):
            raise failed

    async def _ended(self, documents: Sequence[str], writing: Sequence[asyncio.Task[None]]) -> list[BaseException]:
        """Let nothing be under way any more; return what failed.

        A request that was cut off or not answered may still be carried out, after this writer has published a newer
        version of the same document. So it writes under another name from now on: the marks made so far outlive what
        it does next, and have the documents published once more when their lease is over.
        """
        for each in writing:
            each.cancel()  # which says nothing to what has ended
        try:
            failed = [each for each in await asyncio.gather(*writing, return_exceptions=True) if each is not None]
            # Who stood still until now may have been taken for dead, and what was written here may not stand.
            await self._renew(documents)
        finally:  # in which some are still under way when this was cut off as well
            self._resigned += any(not each.done() or each.cancelled() or each.exception() for each in writing)
        return failed

    async def _renew(self, documents: Sequence[str]) -> None:
        """Mark again after a pause, before the marks are taken for those of a dead writer, or when they were."""
        now = asyncio.get_running_loop().time()
        if now - self._at > _RENEW_S:
            await self._state.renew(self._generation, documents, self.writer)
            self._at = now
