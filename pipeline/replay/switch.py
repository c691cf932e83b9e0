"""Promote and roll back: one row, once the generation has what the live one has."""

import asyncio
from collections.abc import Callable

import structlog

from pipeline.clock import Clock
from pipeline.errors import NotPossible
from pipeline.ports.generations import Behind, Generation
from pipeline.ports.replays import Promoted
from pipeline.ports.state import State
from pipeline.replay.supply import Supply

log = structlog.get_logger(__name__)

PAGE = 500
MOST_BEHIND = 2_000
"""What is on its way at one moment; more is a generation that was not kept up."""
LOOK_S = 0.05


class Switch:
    """Makes generations live."""

    def __init__(self, state: State, supply: Supply, versions: Callable[[], dict[str, str]], clock: Clock) -> None:
        self._state, self._supply, self._versions, self._clock = state, supply, versions, clock

    async def promote(self, generation: Generation, force: bool, wait_s: float) -> Promoted:
        """Make it live. Raises NotPossible while it is incomplete or older than the live one, unless forced."""
        name = generation.name
        if generation.state == "live":
            return Promoted(generation=name, replaced="", warnings=(f"{name} was live already",))
        if generation.state == "pruning":
            raise NotPossible(f"{name} is being removed: build another with `shinsen replay`")
        end = asyncio.get_running_loop().time() + wait_s
        if not force:
            await self._check(name, end)
        replaced = next((g.name for g in await self._state.generations() if g.state == "live"), "")
        warnings = await self._make_live(name, force, end)
        await self._supply.promoted(name, replaced)
        log.info("generation_promoted", generation=name, replaced=replaced, forced=force)
        return Promoted(generation=name, replaced=replaced, warnings=(*warnings, *self._warnings(generation)))

    async def rollback(self, force: bool, wait_s: float) -> Promoted:
        """Go back to the generation that was live before and is still there."""
        known = {g.name: g for g in await self._state.generations()}
        for promotion in await self._state.promotions():
            generation = known.get(promotion.generation)
            if generation is not None and generation.state == "retired":
                return await self.promote(generation, force, wait_s)
        raise NotPossible(
            "there is no generation to go back to: none was live before, or it was pruned; build one with "
            "`shinsen replay --into new` under the former settings"
        )

    async def _check(self, name: str, end: float) -> None:
        rebuild = await self._state.rebuild(name)
        if rebuild is not None and rebuild.phase != "complete":
            standing = await self._state.standing(name)
            what = f"{standing.records - standing.behind} of {standing.records} documents are there"
            if rebuild.phase == "partial":
                raise NotPossible(
                    f"{name} is partial, built for {', '.join(rebuild.plan.collections)} only ({what}): "
                    "`shinsen replay --into new` without --collection fills in the rest"
                )
            raise NotPossible(
                f"{name} is not complete ({rebuild.phase}; {what}): `shinsen generations` shows how far it is; "
                "wait, or --force"
            )
        if (await self._supply.look(name)).members == 0:
            raise NotPossible(f"no worker serves {name}, so it would not follow changes: start one, or --force")
        await self._nothing_behind(name, end)

    async def _nothing_behind(self, name: str, end: float) -> None:
        """Wait until everything that is known now is in the generation."""
        waiting, after = [], ""
        while page := await self._state.behind(name, after=after, limit=PAGE):
            waiting += page
            after = page[-1].document
            if len(waiting) > MOST_BEHIND:
                raise NotPossible(
                    f"{name} lacks the newest version of more than {MOST_BEHIND} documents, {waiting[0].document} for "
                    "one: wait until its lag is small (`shinsen generations`), or --force"
                )
        while waiting := await self._left(name, waiting):
            if asyncio.get_running_loop().time() > end:
                raise NotPossible(
                    f"{name} still lacks the newest version of {len(waiting)} documents, {waiting[0].document} for "
                    "one: wait until its lag is small (`shinsen generations`), or --force"
                )
            await asyncio.sleep(LOOK_S)

    async def _left(self, name: str, waiting: list[Behind]) -> list[Behind]:
        settled = await self._state.settled(name, [one.document for one in waiting])
        return [one for one in waiting if settled.get(one.document, "") < one.position]

    async def _make_live(self, name: str, force: bool, end: float) -> tuple[str, ...]:
        """Write the row at a moment at which no document is newer in the live generation.

        Under heavy load there may be none: then right after all that was known a moment before has arrived.
        Returns a warning in that case.
        """
        loop = asyncio.get_running_loop()
        strict = (loop.time() + end) / 2
        while older := await self._state.promote(name, self._clock(), unless_older=not force):
            if loop.time() > strict:
                await self._nothing_behind(name, end)
                await self._state.promote(name, self._clock())
                return (
                    f"changes come so fast that {older[0]} and perhaps others were newer in the generation before; "
                    "they follow in moments, and freshness tokens wait for them",
                )
            await asyncio.sleep(LOOK_S)
        return ()

    def _warnings(self, generation: Generation) -> tuple[str, ...]:
        running = self._versions()
        differ = sorted(
            k for k in running.keys() | generation.versions.keys() if running.get(k) != generation.versions.get(k)
        )
        if not differ:
            return ()
        return (
            f"{generation.name} was built with another {', '.join(differ)} than this process runs: start it again with "
            "the settings that the generation was built with",
        )
