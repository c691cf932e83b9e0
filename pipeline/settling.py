"""Waiting until events have ended: what freshness tokens and `?wait=applied` stand on."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from pipeline.errors import EventDead, NotFresh
from pipeline.ports.state import State
from schemas.outcome import OutcomeName, TokenPart
from schemas.position import as_sent

POLL = 1.0
"""Seconds after which a waiter looks again even if nobody woke it."""


class Settling:
    """Wakes waiters whenever something was published."""

    def __init__(self, state: State, live_generation: Callable[[], Awaitable[str]]) -> None:
        self._state, self._live = state, live_generation
        self._changed = asyncio.Event()

    def progressed(self) -> None:
        """Let every waiter look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def settled(self, parts: Sequence[TokenPart], timeout_s: float) -> None:
        """Return when all parts are settled. Raises EventDead, or NotFresh after `timeout_s`."""
        end = asyncio.get_running_loop().time() + timeout_s
        while True:
            changed = self._changed
            left = await self._unsettled(parts)
            if not left:
                return
            if not await _wait(changed, end):
                first = left[0]
                raise NotFresh(
                    f"{first.document} has not reached position {first.position} within {timeout_s:g} s "
                    f"({len(left)} of {len(parts)} parts of the token are open); wait longer or look at /v1/status"
                )

    async def _unsettled(self, parts: Sequence[TokenPart]) -> list[TokenPart]:
        documents = sorted({part.document for part in parts})
        reached = await self._state.settled(await self._live(), documents)
        # After the positions, because a refused version is withdrawn at its position after its letter was written.
        dead = await self._state.dead_positions(documents)
        for part in parts:
            for letter in dead.get(part.document, []):
                if as_sent(letter.position) == as_sent(part.position):
                    raise EventDead(f"dead letter {letter.id} ({letter.code}): {letter.reason}")
        return [part for part in parts if reached.get(part.document, "") < part.position]

    async def outcomes(self, events: Sequence[str], timeout_s: float) -> dict[str, OutcomeName]:
        """Return the outcomes known when all are there, or when the time is over."""
        end = asyncio.get_running_loop().time() + timeout_s
        while True:
            changed = self._changed
            known = await self._state.outcomes(events)
            if len(known) == len(set(events)) or not await _wait(changed, end):
                return known


async def _wait(changed: asyncio.Event, end: float) -> bool:
    """Wait for a change or a second; False when the time is over."""
    rest = end - asyncio.get_running_loop().time()
    if rest <= 0:
        return False
    with contextlib.suppress(TimeoutError):  # look again: something may have changed without a word
        async with asyncio.timeout(min(rest, POLL)):  # not wait_for: see `Loops`
            await changed.wait()
    return True
