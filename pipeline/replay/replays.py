"""Replays over any shell: what is the same for one process and for many machines."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec
import structlog

from pipeline.clock import Clock
from pipeline.errors import BackendUnavailable, NotFound, NotFresh, NotPossible
from pipeline.ports.generations import Generation, Indexes, Rebuild, ReplayPlan
from pipeline.ports.replays import Comparison, GenerationStatus, Promoted, Started
from pipeline.ports.state import State
from pipeline.recent import Recent
from pipeline.replay.build import Build
from pipeline.replay.compare import compare
from pipeline.replay.plan import check_plan
from pipeline.replay.progress import Meter, status_of
from pipeline.replay.selection import selected
from pipeline.replay.supply import Look, Supply
from pipeline.replay.switch import Switch

log = structlog.get_logger(__name__)

LOOK_S = 0.2


class StateReplays:
    """Implements `pipeline.ports.replays.Replays`. Any number of processes may have one; the state store decides."""

    def __init__(self, state: State, supply: Supply, versions: Callable[[], dict[str, str]], clock: Clock) -> None:
        self._state, self._supply, self._versions, self._clock = state, supply, versions, clock
        self._switch = Switch(state, supply, versions, clock)
        self._builds: dict[str, asyncio.Task[None]] = {}
        self._meters: dict[str, Meter] = {}
        self._lock = asyncio.Lock()
        self._looked = Recent(self._look)

    async def close(self) -> None:
        """Stop working on rebuilds; the same command goes on with them."""
        for task in self._builds.values():
            task.cancel()
        await asyncio.gather(*self._builds.values(), return_exceptions=True)
        self._builds.clear()

    # ---------------------------------------------------------------- building

    async def start(self, plan: ReplayPlan) -> Started:
        """Begin, or go on with what was begun."""
        check_plan(plan, await self._state.collections())
        async with self._lock:
            if plan.into == "live":
                return await self._redo(plan)
            begun = await self._begun(plan)
            name = begun or await self._create(plan)
            self._go_on(name)
            standing = await self._state.standing(name)
            return Started(generation=name, resumed=bool(begun), documents=standing.records)

    async def go_on(self) -> None:
        """Go on with every rebuild that was cut off and has the versions that run here."""
        for generation in await self._state.generations():
            if generation.state == "building" and generation.versions == self._versions():
                self._go_on(generation.name)

    async def _begun(self, plan: ReplayPlan) -> str:
        """Return the name of the unfinished rebuild that this plan asks for, empty when there is none."""
        building = [g for g in await self._state.generations() if g.state == "building"]
        for generation in building:
            rebuild = await self._state.rebuild(generation.name)
            if generation.versions != self._versions():
                differ = ", ".join(_differing(generation.versions, self._versions()))
                raise NotPossible(
                    f"{generation.name} is being built with another {differ}: `shinsen prune {generation.name}` drops "
                    "it, then this can begin"
                )
            if rebuild is not None and not _goes_on(rebuild.plan, plan):
                raise NotPossible(
                    f"{generation.name} is being built already, from {rebuild.plan.start}"
                    f"{_of(rebuild.plan.collections)}: ask for the same again to go on with it, or "
                    f"`shinsen prune {generation.name}` drops it"
                )
            if rebuild is not None and rebuild.plan.collections and not plan.collections:
                # All of it now: what is not there yet is filled in.
                widened = msgspec.structs.replace(rebuild, plan=plan, phase="filling")
                await self._state.save_rebuild(generation.name, widened)
                self._changed()  # who waits for its end must not read the old one
            return generation.name
        return ""

    async def _create(self, plan: ReplayPlan) -> str:
        name = await self._state.next_generation()
        targets = await self._supply.create(name, plan)
        generation = Generation(name=name, created_at=self._clock(), versions=self._versions())
        await self._state.create_generation(generation, Rebuild(plan=plan, targets=targets))
        self._changed()
        log.info("rebuild_begun", generation=name, start=plan.start, collections=plan.collections)
        return name

    def _go_on(self, name: str) -> None:
        task = self._builds.get(name)
        if task is None or task.done():
            build = Build(name, self._state, self._supply)
            self._builds[name] = asyncio.create_task(build.run())

    async def _redo(self, plan: ReplayPlan) -> Started:
        """Mark documents durably, so that they are done again whatever is killed, and say so to whoever does it."""
        live = await self._live()
        self._refuse_other_models(live)
        number = 0
        async with self._supply.indexes(live.name) as indexes:
            async for page in selected(plan, self._state, self._supply, indexes):
                await self._state.mark_relinks(live.name, page)
                await self._supply.again(live.name, page)
                number += len(page)
        if plan.current or not (plan.documents or plan.holding or plan.collections or plan.start != "beginning"):
            await self._state.set_versions(live.name, self._versions())
        log.info("documents_done_again", generation=live.name, documents=number)
        return Started(generation=live.name, documents=number)

    def _refuse_other_models(self, live: Generation) -> None:
        if live.versions.get("embedder", "") != self._versions().get("embedder", ""):
            raise NotPossible(
                f"{live.name} has vectors of {live.versions.get('embedder') or 'no model'}, this process runs "
                f"{self._versions().get('embedder') or 'no model'}: they cannot be compared with each other in one "
                "generation; use `shinsen replay --into new`"
            )

    async def replace(self) -> dict[str, Any]:
        """Build a generation, make it live, remove the ones before; return what was done. What is cut off goes on
        when it is asked for again."""
        started = await self.start(ReplayPlan())
        built = await self.finished(started.generation)
        if built.stopped:
            raise BackendUnavailable(f"{started.generation} cannot be finished: {built.stuck}")
        promoted = await self.promote(started.generation)
        await self.prune()
        return {"generation": promoted.generation, "replaced": promoted.replaced, "documents": built.records}

    async def finished(self, name: str, timeout_s: float | None = None) -> GenerationStatus:
        """Wait for the end of a rebuild."""
        end = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        while True:
            await self._known(name)
            rebuild = await self._state.rebuild(name)
            if rebuild is None or rebuild.failure or rebuild.phase in ("complete", "partial"):
                return await self._status(await self._known(name))
            if end is not None and asyncio.get_running_loop().time() > end:
                raise NotFresh(
                    f"{name} is still being built after {timeout_s:g} s; `shinsen generations` shows how far"
                )
            await asyncio.sleep(LOOK_S)

    # ---------------------------------------------------------------- looking

    async def statuses(self) -> list[GenerationStatus]:
        """Look at all generations; perhaps half a second ago, or longer ago where looking takes long."""
        return await self._looked.get()

    async def _look(self) -> list[GenerationStatus]:
        return [await self._status(generation) for generation in await self._state.generations()]

    def _changed(self) -> None:
        self._looked = Recent(self._look)

    async def _status(self, generation: Generation) -> GenerationStatus:
        rebuild = await self._state.rebuild(generation.name)
        promoted = [p.at for p in await self._state.promotions() if p.generation == generation.name]
        meter = self._meters.setdefault(generation.name, Meter())
        standing = await self._state.standing(generation.name)
        try:
            look = await self._supply.look(generation.name)
        except BackendUnavailable as error:  # what the state store says is worth showing without it
            log.warning("generation_not_looked_at", generation=generation.name, reason=str(error))
            look = Look()
        return status_of(generation, rebuild, standing, look, meter, promoted[0] if promoted else "")

    async def _known(self, name: str) -> Generation:
        known = await self._state.generations()
        for generation in known:
            if generation.name == name:
                return generation
        raise NotFound(f"no generation {name}; there are: {', '.join(g.name for g in known)}")

    async def _live(self) -> Generation:
        for generation in await self._state.generations():
            if generation.state == "live":
                return generation
        raise BackendUnavailable("no generation is live: start a worker, or promote one")

    async def compare(self, first: str, second: str, collections: Sequence[str] = ()) -> Comparison:
        """Read two back."""
        for name in (first, second):
            await self._known(name)
        prefixes = tuple(f"{name}/" for name in collections)
        async with self._supply.indexes(first) as one, self._supply.indexes(second) as other:
            return await compare(self._state, one, other, prefixes)

    def indexes(self, name: str) -> AbstractAsyncContextManager[Indexes]:
        """Pin a generation."""
        return self._supply.indexes(name)

    # ---------------------------------------------------------------- switching and removing

    async def promote(self, name: str, *, force: bool = False, wait_s: float = 30.0) -> Promoted:
        """Make it live."""
        return await self._alone(self._switch.promote(await self._known(name), force, wait_s))

    async def rollback(self, *, force: bool = False, wait_s: float = 30.0) -> Promoted:
        """Make the one before live."""
        return await self._alone(self._switch.rollback(force, wait_s))

    async def _alone(self, work: Coroutine[Any, Any, Promoted]) -> Promoted:
        try:
            async with self._lock:
                return await work
        finally:
            self._changed()

    async def prune(self, names: Sequence[str] = ()) -> list[str]:
        """Remove generations."""
        known = {g.name: g for g in await self._state.generations()}
        gone = [name for name in names if name not in known]
        if gone:
            raise NotFound(f"no generation {', '.join(gone)}; there are: {', '.join(known)}")
        chosen = list(names) or [g.name for g in known.values() if g.state in ("retired", "pruning")]
        live = [name for name in chosen if known[name].state == "live"]
        if live:
            raise NotPossible(f"{live[0]} is live: promote another generation first")
        for name in chosen:
            await self._remove(name)
        return chosen

    async def _remove(self, name: str) -> None:
        task = self._builds.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._supply.readers_gone(name, await self._left_live(name))
        try:
            await self._state.begin_prune(name)
        except ValueError as error:  # promoted meanwhile
            raise NotPossible(f"{name} is live: promote another generation first") from error
        await self._supply.remove(name)
        await self._state.drop_generation(name)
        self._meters.pop(name, None)
        self._changed()
        log.info("generation_pruned", generation=name)

    async def _left_live(self, name: str) -> str:
        """Return when it last stopped being live; empty when it never was."""
        after = ""
        for promotion in await self._state.promotions():
            if promotion.generation == name:
                return after
            after = promotion.at
        return ""


def _goes_on(begun: ReplayPlan, asked: ReplayPlan) -> bool:
    """Say whether a rebuild serves what is asked: the same, or the rest of a partial one."""
    same_start = begun.start == asked.start
    return same_start and (begun.collections == asked.collections or not asked.collections)


def _of(collections: Sequence[str]) -> str:
    return f", of {', '.join(collections)} only" if collections else ""


def _differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return sorted(part for part in one.keys() | other.keys() if one.get(part) != other.get(part))
