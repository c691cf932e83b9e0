"""Refining: vectors of sentences are made when nothing else waits, and their documents published anew with them."""

import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from pipeline.errors import ModelFailed
from pipeline.ports.state import State
from pipeline.prepare import Preparer

log = structlog.get_logger(__name__)

PAGE = 8
"""Documents looked at together; each is made and handed on by itself."""
HANDED_S = 60.0
"""So long a version that was handed on is not taken again."""
FAILED_S = 600.0
"""So long one is left alone on which the models failed, and `REST_S` all others: a change needs the models more."""
REST_S = 30.0


class Refiner:
    """Takes the documents of a generation that lack vectors of sentences, a few at a time, for ever.

    Until they have them a passage's own vector speaks for its sentences, so that nothing waits for this. What is made
    goes into the cache; publishing a document anew, with what it finds there, is the business of whoever publishes.
    """

    def __init__(
        self,
        generation: str,
        state: State,
        preparer: Preparer,
        again: Callable[[Sequence[str]], Awaitable[None]],
        *,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`again` has documents published once more."""
        self._generation, self._state, self._preparer = generation, state, preparer
        self._again, self._seconds = again, seconds
        self._until: dict[tuple[str, str], float] = {}
        """When a document's version, by its position, may be taken again."""
        self._after, self._rests_until = "", 0.0

    async def refine(self) -> bool:
        """Do the next few; return whether there may be more. Raises BackendUnavailable when a store is away."""
        now = self._seconds()
        if now < self._rests_until:
            return False
        self._until = {version: until for version, until in self._until.items() if until > now}
        page = await self._state.unrefined(self._generation, after=self._after, limit=PAGE)
        self._after = page[-1] if len(page) == PAGE else ""
        for version in (await self._state.positions(page)).items():
            if version not in self._until and not await self._refined(version):
                return False
        return bool(self._after)

    async def _refined(self, version: tuple[str, str]) -> bool:
        document, _ = version
        records = await self._state.records([document])
        try:
            await self._preparer.refine(list(records.values()), "bulk")
        except ModelFailed as error:
            log.warning(
                "not_refined", generation=self._generation, document=document, reason=str(error), again=FAILED_S
            )
            self._until[version], self._rests_until = self._seconds() + FAILED_S, self._seconds() + REST_S
            return False
        self._until[version] = self._seconds() + HANDED_S
        await self._again([document])
        return True
