"""Which stores answer, and since when."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pipeline.clock import Clock
from pipeline.errors import BackendUnavailable
from pipeline.ports.signals import StoreState
from pipeline.recent import Recent

PROBE_S = 2.0
KEPT_S = 1.0

Probe = Callable[[], Awaitable[object]]
"""Asks a store something small; raises BackendUnavailable when it does not answer."""


class StoreHealth:
    """Asks every store at once, each within two seconds, at most once a second however many look."""

    def __init__(self, probes: Mapping[str, Probe], clock: Clock) -> None:
        self._probes, self._clock = probes, clock
        self._since: dict[str, tuple[bool, str]] = {}
        self._recent = Recent(self._look, KEPT_S, share=0)  # a store that hangs must not be called down for long after

    async def states(self) -> list[StoreState]:
        """Return each store's state, in the order of the probes. Never raises."""
        return await self._recent.get()

    def why_away(self, name: str) -> str:
        """Return what a store last did not answer with; empty when it answered, or nobody looked yet."""
        return next((store.detail for store in self._recent.last or () if store.name == name), "")

    async def _look(self) -> list[StoreState]:
        said = await asyncio.gather(*(_asked(probe) for probe in self._probes.values()))
        return [self._noted(name, detail) for name, detail in zip(self._probes, said, strict=True)]

    def _noted(self, name: str, detail: str) -> StoreState:
        """Remember when the store last changed between answering and not."""
        known = self._since.get(name)
        if known is None or known[0] != (not detail):
            known = self._since[name] = (not detail, self._clock())
        return StoreState(name=name, up=not detail, since=known[1], detail=detail)


async def _asked(probe: Probe) -> str:
    """Return what is wrong; empty when the store answers."""
    try:
        async with asyncio.timeout(PROBE_S):
            await probe()
    except BackendUnavailable as error:
        return str(error)
    except TimeoutError:
        return f"no answer within {PROBE_S:g} s"
    return ""
