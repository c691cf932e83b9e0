"""One rebuild, from reading its source to complete. Killed anywhere, the next run goes on where the rows say."""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from pipeline.errors import BackendUnavailable
from pipeline.ports.generations import Behind, Phase, Rebuild
from pipeline.ports.state import State
from pipeline.replay.supply import Supply

log = structlog.get_logger(__name__)

PAGE = 500
LOOK_S = 0.2
GRACE_S = 1.0
"""What is behind only because it changes right now arrives in this time, without being sent."""
AGAIN_S = 60.0
"""What was sent and has not arrived is sent once more."""
SENDS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
TRIES = 30
"""Of looks at stores that do not answer, one after the other: about ten minutes."""


class Build:
    """Runs in whatever process began it; several at once do no harm."""

    def __init__(self, name: str, state: State, supply: Supply) -> None:
        self.name, self._state, self._supply = name, state, supply

    async def run(self) -> None:
        """Go on until it is complete, or note why nobody goes on."""
        try:
            await self._note(failure="")
            await self._persist()
        except BackendUnavailable as error:
            await self._fail(f"a store did not answer for long: {error}")
        except _Stays as error:
            await self._fail(str(error))
        except _Pruned:
            log.info("rebuild_pruned", generation=self.name)
        except Exception as error:
            log.exception("rebuild_failed", generation=self.name)
            await self._fail(f"{type(error).__name__}: see the log")

    async def _fail(self, reason: str) -> None:
        log.error("rebuild_stopped", generation=self.name, reason=reason)
        try:
            await self._note(failure=reason)
        except BackendUnavailable as error:
            log.warning("rebuild_not_noted", generation=self.name, reason=str(error))

    async def _persist(self) -> None:
        pause = FIRST_PAUSE
        for _ in range(TRIES):
            try:
                await self._steps()
            except BackendUnavailable as error:
                log.warning("rebuild_paused", generation=self.name, reason=str(error), seconds=pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return
        await self._steps()

    async def _steps(self) -> None:
        rebuild = await self._state.rebuild(self.name)
        if rebuild is None:
            return  # pruned meanwhile
        await self._supply.begin(self.name)
        if rebuild.phase == "reading":
            while not await self._supply.read(self.name, rebuild.targets):
                await asyncio.sleep(LOOK_S)
                await self._check_kept()
            rebuild = await self._note(phase="filling")
        if rebuild is not None and rebuild.phase == "filling":
            await self._fill(rebuild.plan.collections)
            await self._note(phase="partial" if rebuild.plan.collections else "complete")
            log.info("rebuild_complete", generation=self.name)

    async def _check_kept(self) -> None:
        """Stop when another process prunes it: what is sent to its topics would make them anew."""
        if await self._state.rebuild(self.name) is None:
            raise _Pruned

    async def _note(self, *, phase: Phase | None = None, failure: str | None = None, filled: int = 0) -> Rebuild | None:
        """Change the row of the rebuild; returns what stands."""
        rebuild = await self._state.rebuild(self.name)
        if rebuild is not None:
            rebuild = msgspec.structs.replace(
                rebuild,
                phase=phase or rebuild.phase,
                failure=rebuild.failure if failure is None else failure,
                filled=rebuild.filled + filled,
            )
            await self._state.save_rebuild(self.name, rebuild)
        return rebuild

    # ---------------------------------------------------------------- filling

    async def _fill(self, collections: Sequence[str]) -> None:
        """Send what the source did not have, in order of the key, and wait until it is there."""
        for prefix in [f"{name}/" for name in collections] or [""]:
            after, grace = "", GRACE_S
            while page := await self._state.behind(self.name, prefix=prefix, after=after, limit=PAGE):
                after = page[-1].document
                await asyncio.sleep(grace)
                left = await self._left(page)
                # Where most of a page had to be sent, waiting for the next page to come by itself is of no use.
                grace = 0.0 if 2 * len(left) > len(page) else GRACE_S
                await self._send(left)

    async def _left(self, page: Sequence[Behind]) -> list[Behind]:
        settled = await self._state.settled(self.name, [one.document for one in page])
        return [one for one in page if settled.get(one.document, "") < one.position]

    async def _send(self, page: list[Behind]) -> None:
        if page:
            await self._note(filled=len(page))
        for _ in range(SENDS):
            if not page:
                return
            await self._check_kept()
            await self._supply.again(self.name, [one.document for one in page])
            page = await self._arrived(page)
        raise _Stays(
            f"{len(page)} documents such as {page[0].document} were sent {SENDS} times and are not there: see "
            "`shinsen dlq list` and the log of the workers"
        )

    async def _arrived(self, page: list[Behind]) -> list[Behind]:
        """Wait; returns what has not come, once nothing has for long."""
        still = 0.0
        while page and still < AGAIN_S:
            left = await self._left(page)
            still = 0.0 if len(left) < len(page) else still + LOOK_S
            page = left
            await asyncio.sleep(LOOK_S if page else 0)
        return page


class _Stays(Exception):
    """Documents that never arrive."""


class _Pruned(Exception):
    """The generation is going, or gone."""
