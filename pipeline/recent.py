"""A read that many ask for: made by one of them, and kept for a moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

KEPT_S = 0.5
SHARE = 10
"""A result is kept at least this many times longer than reading it took: a read that grew slow stays a tenth of the
time of its store."""


class Recent(Generic[T]):
    """Keeps the last result for `kept_s`; who comes meanwhile, or while it is read, gets the same one.

    Errors are not kept: they go to the caller, and the next one reads again.
    """

    def __init__(self, read: Callable[[], Awaitable[T]], kept_s: float = KEPT_S) -> None:
        self._read, self._kept_s = read, kept_s
        self._lock = asyncio.Lock()
        self._kept: tuple[T] | None = None
        self._until = 0.0

    async def get(self) -> T:
        """Return the result, at most `kept_s` old, or ten times what reading it took."""
        if self._kept is not None and time.monotonic() < self._until:
            return self._kept[0]
        asked = time.monotonic()
        async with self._lock:
            if self._kept is not None and asked < self._until:
                return self._kept[0]  # somebody read it while this one waited
            started = time.monotonic()
            self._kept = (await self._read(),)
            ended = time.monotonic()
            self._until = ended + max(self._kept_s, SHARE * (ended - started))
            return self._kept[0]

    def forget(self) -> None:
        """Let the next caller read anew."""
        self._kept = None
