"""Batches by hand, and waiting for what is down: the two parts of the pattern that loses nothing (PITFALLS.md)."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import structlog

from pipeline.errors import BackendUnavailable

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
TRIES = 18
"""Some five minutes of waiting for a store; then the process ends, and whoever runs it sees."""
MOST_BYTES = 8 << 20
"""Of one batch; a single message may be larger."""


async def batches(stream: Any, most: int, linger: float) -> AsyncIterator[list[Any]]:
    """Collect events up to `most`, or MOST_BYTES, or until none came for `linger` seconds; none is acknowledged.

    By hand, since Faust's own `take` loses a whole batch when its body raises. The next event is asked
    for in a task that outlives a pause: cancelling it would close the stream.
    """
    events = stream.noack().events().__aiter__()
    coming = asyncio.ensure_future(anext(events))
    batch: list[Any] = []
    size = 0
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=linger if batch else None)
            if done:
                try:
                    batch.append(coming.result())
                except StopAsyncIteration:
                    break
                size += _size(batch[-1])
                coming = asyncio.ensure_future(anext(events))
            if batch and (not done or len(batch) >= most or size >= MOST_BYTES):
                yield batch
                batch, size = [], 0
        if batch:
            yield batch
    finally:
        coming.cancel()


def _size(event: Any) -> int:
    message = getattr(event, "message", None)
    return len(getattr(message, "value", None) or b"")


async def persist(work: Callable[[], Awaitable[object]], pauses: Iterator[float] | None = None) -> None:
    """Do work again while a store is down, after longer and longer pauses; then let the error out."""
    for pause in pauses or growing_pauses():
        try:
            await work()
        except BackendUnavailable as error:
            log.warning("stage_paused", reason=str(error), seconds=pause)
            await asyncio.sleep(pause)
        else:
            return
    await work()


def growing_pauses(tries: int | None = TRIES) -> Iterator[float]:
    """Yield the pauses between so many tries; without end for None."""
    pause = FIRST_PAUSE
    for _ in itertools.repeat(None) if tries is None else range(tries - 1):
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
