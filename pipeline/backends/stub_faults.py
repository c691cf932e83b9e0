"""Delays and failures that the stub models can be told to make, for tests of faults, sizes and scale."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from pipeline.errors import BackendUnavailable


class StubFaults(msgspec.Struct):
    """What goes wrong in a stub. May be changed while it runs."""

    delay_s: float = 0.0
    """Each call takes at least this long; other work goes on meanwhile."""
    fail_next: int = 0
    """So many of the next calls raise BackendUnavailable."""
    fails_on: Callable[[str], bool] | None = None
    """Calls with a text for which this is true raise BackendUnavailable, each time."""
    calls: int = 0
    """How many calls there were: to prove that a cache was used."""
    texts: int = 0

    async def before(self, texts: Sequence[str]) -> None:
        """Count one call, wait, and fail as told."""
        self.calls += 1
        self.texts += len(texts)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.fail_next > 0:
            self.fail_next -= 1
            raise BackendUnavailable("the stub was told to fail")
        if self.fails_on is not None and any(map(self.fails_on, texts)):
            raise BackendUnavailable("the stub was told to fail on this text")
