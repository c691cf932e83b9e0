"""A read that many ask for: made for one of them, and kept for a moment."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from pipeline.errors import BackendUnavailable

T = TypeVar("T")

KEPT_S = 0.5
SHARE = 10
"""A result is kept at least this many times longer than reading it took: a read that grew slow takes at most a
tenth of its store's time."""


class Recent(Generic[T]):
    """Keeps the last result for `kept_s`; who comes meanwhile, or while it is read, gets the same one.

    For `stale_s` more the old one is given while a new one is read in the background, so that nobody waits.
    Errors are not kept: they go to the caller, and the next one reads again.
    """

    def __init__(
        self, read: Callable[[], Awaitable[T]], kept_s: float = KEPT_S, stale_s: float = 0.0, share: int = SHARE
    ) -> None:
        self._read, self._kept_s, self._stale_s, self._share = read, kept_s, stale_s, share
        self._lock = asyncio.Lock()
        self._kept: tuple[T] | None = None
        self._until = 0.0
        self._refreshing: asyncio.Task[None] | None = None

    @property
    def last(self) -> T | None:
        """The last result, however old; None when there was none."""
        return self._kept[0] if self._kept is not None else None

    async def get(self) -> T:
        """Return the result; raises what reading it raises."""
        now = time.monotonic()
        if self._kept is not None and now < self._until + self._stale_s:
            if now >= self._until and (self._refreshing is None or self._refreshing.done()):
                self._refreshing = asyncio.create_task(self._refresh(now))
            return self._kept[0]
        return await self._fresh(now)

    async def _refresh(self, asked: float) -> None:
        with contextlib.suppress(BackendUnavailable):  # whoever asks when the old one is too old is told
            await self._fresh(asked)

    async def _fresh(self, asked: float) -> T:
        async with self._lock:
            if self._kept is not None and asked < self._until:
                return self._kept[0]  # somebody read it while this one waited
            started = time.monotonic()
            result = await self._read()
            ended = time.monotonic()
            self._kept, self._until = (result,), ended + max(self._kept_s, self._share * (ended - started))
            return result

    async def close(self) -> None:
        """Stop a read in the background."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)
