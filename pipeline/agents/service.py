"""A worker: runs the stages it was asked for, for the generations that it serves, as these come and go."""

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import faust
import structlog
from mode import Service

from pipeline.dictionary_change import outdated_parts
from pipeline.errors import BackendUnavailable, InvalidConfiguration
from pipeline.ports.state import Generation, State
from schemas.change_event import Lane

log = structlog.get_logger(__name__)

STAGES = ("reconcile", "analyze", "apply")
LANES: tuple[Lane, ...] = ("live", "bulk")
LOOK_S = 1.0
"""Between looks at the generations."""
GRACE_S = 60.0
"""After workers of another configuration were seen: so long may they take to start again."""
GONE = ("pruning",)
"""States of a generation that nobody may write to any more."""


class Part(NamedTuple):
    """One lane of one stage, of one generation (empty for `reconcile`)."""

    stage: str
    generation: str
    lane: Lane


class Shop(Protocol):
    """Makes the parts of a worker."""

    async def open_generation(self, generation: Generation, *, announces: bool) -> None:
        """Open the indexes of a generation and see to its topics."""

    async def close_generation(self, name: str) -> None:
        """Let go of a generation's indexes; idempotent."""

    async def others(self, generation: str) -> list[str]:
        """Return the names of workers with another configuration that serve a generation."""

    def announce(self, live: str) -> None:
        """Let only this one of the open generations announce."""

    async def app(self, part: Part) -> faust.App:
        """Return the app of a part of an open generation."""

    async def outdated(self) -> list[Part]:
        """Return parts whose app reads other topics than it would if it was made now."""

    async def look_after(self, apps: Mapping[Part, Any]) -> None:
        """Do what is due now and then beside the messages."""


class Worker(Service):
    """Keeps an app running for each part it should serve. A part that fails ends the process."""

    def __init__(self, *, stages: Collection[str], pinned: Collection[str]) -> None:
        """Serve these stages; of the generations those pinned, or those that fit when none is. `equip` comes next."""
        super().__init__()
        self._stages, self._pinned = tuple(stage for stage in STAGES if stage in stages), frozenset(pinned)
        self._first_live = self._live = ""
        self._apps: dict[Part, faust.App] = {}
        self._open: set[str] = set()
        self._refused: set[str] = set()
        self._others: dict[str, tuple[float, list[str]]] = {}

    def equip(self, shop: Shop, state: State, versions: dict[str, str]) -> None:
        """Take what makes the parts, the state store, and the versions of what is built here."""
        self._shop, self._state, self._versions = shop, state, versions

    async def on_start(self) -> None:
        """Start what is to be served now."""
        await self.look()

    @Service.task
    async def _watch(self) -> None:
        while not self.should_stop:
            await self.sleep(LOOK_S)
            try:
                await self.look()
                await self._shop.look_after(dict(self._apps))
            except BackendUnavailable as error:  # what runs goes on, and waits for the store by itself
                log.warning("generations_not_read", reason=str(error))

    async def look(self) -> None:
        """Read the generations; start and stop what that asks for."""
        known = await self._state.generations()
        live = next((one.name for one in known if one.state == "live"), "")
        if not self._first_live:
            self._first_live = live
            self._say_what_differs(known)
        served = {one.name: one for one in known if await self._serves(one)}
        self._shop.announce(live)
        self._say_who_serves(live, served.keys())
        for gone in sorted(self._open - served.keys()):
            await self._stop(gone)
        for part in await self._shop.outdated():
            if part in self._apps:
                log.info("part_made_anew", stage=part.stage, lane=part.lane)
                await self.remove_dependency(self._apps.pop(part))
        wanted = [Part("reconcile", "", lane) for lane in LANES if "reconcile" in self._stages]
        if set(self._stages) & {"analyze", "apply"}:
            for name in sorted(served.keys() - self._open):
                await self._take_up(served[name], live)
        stages = [stage for stage in self._stages if stage != "reconcile"]
        wanted += [Part(stage, name, lane) for name in sorted(self._open) for stage in stages for lane in LANES]
        await self._start([part for part in wanted if part not in self._apps])

    async def _take_up(self, one: Generation, live: str) -> None:
        try:
            await self._shop.open_generation(one, announces=one.name == live)
        except InvalidConfiguration as error:
            if one.name == live:
                raise
            if one.name not in self._refused:  # the live one goes on; this one is tried again, and said once
                log.error("generation_not_served", generation=one.name, reason=str(error))
            self._refused.add(one.name)
            return
        self._open.add(one.name)
        log.info("generation_served", generation=one.name, state=one.state)

    async def _serves(self, one: Generation) -> bool:
        if one.state in GONE:
            return False
        if self._pinned:
            return one.name in self._pinned
        return one.versions == self._versions or (one.name == self._first_live and not await self._left_to(one))

    async def _left_to(self, one: Generation) -> list[str]:
        """Return the workers of another configuration, now or a moment ago, that serve what other versions built.

        Beside them this one would mix two mappings, or the vectors of two models. When nobody else serves it, it must:
        changes of the live generation cannot wait until somebody rebuilds it.
        """
        now = asyncio.get_running_loop().time()
        seen, before = self._others.get(one.name, (-math.inf, None))
        found = await self._shop.others(one.name)
        if not found and before and now < seen + GRACE_S:
            return before
        self._others[one.name] = now, found
        if found and not before:
            advice = 'this one serves what its own configuration built: see "Upgrades" in the runbook'
            log.warning("generation_left_to_others", generation=one.name, workers=found, advice=advice)
        elif not found and before != []:
            advice = "nobody else serves it, so this one mixes two configurations in it: run `shinsen replay` soon"
            log.error("generation_of_other_versions_served", generation=one.name, advice=advice)
        return found

    def _say_what_differs(self, known: Sequence[Generation]) -> None:
        built = next((one.versions for one in known if one.name == self._first_live), self._versions)
        changed = outdated_parts(built, self._versions)
        if changed:
            log.warning("indexes_outdated", changed=changed, advice="run `shinsen replay` to rebuild them")

    def _say_who_serves(self, live: str, served: Collection[str]) -> None:
        """Notice once that another generation became live, which was built with other versions than these."""
        if live != self._live:
            self._live = live
            if live not in served and live not in self._others:
                advice = "start workers with its configuration: this one only finishes the generations before"
                log.warning("live_generation_not_served", generation=live, advice=advice)

    async def _start(self, parts: Sequence[Part]) -> None:
        apps = [await self._shop.app(part) for part in parts]
        for part, app in zip(parts, apps, strict=True):
            self._apps[part] = app
            self.add_dependency(app)
        await asyncio.gather(*(app.maybe_start() for app in apps))

    async def _stop(self, generation: str) -> None:
        for part in [part for part in self._apps if part.generation == generation]:
            await self.remove_dependency(self._apps.pop(part))
        await self._shop.close_generation(generation)
        self._open.discard(generation)
        log.info("generation_let_go", generation=generation)
