"""What the embedded runtime tells of itself, read from its own counters and queues."""

from collections.abc import Callable

from pipeline.change_times import ChangeTimes
from pipeline.clock import Clock
from pipeline.embedded.intake import Intake
from pipeline.embedded.schedule import Queue
from pipeline.generations import OpenGeneration
from pipeline.health import StoreHealth
from pipeline.ports.runtime import Watermarks
from pipeline.ports.signals import Health, Signals, StageLag
from pipeline.ports.state import State
from pipeline.recent import Recent

_WORK: tuple[Queue, ...] = ("text", "live", "full")


class EmbeddedSignals:
    """Reads the intake's and the live generation's counters."""

    def __init__(self, state: State, intake: Intake, live: Callable[[], OpenGeneration], clock: Clock) -> None:
        self._state, self._intake, self._live, self._clock = state, intake, live, clock
        self.times = ChangeTimes()
        self._counts = Recent(lambda: state.counts(live().name))
        self._stores = StoreHealth({"state": state.generations, "chunks": self._chunks, "graph": self._graph}, clock)

    async def _chunks(self) -> object:
        return await self._live().chunks.count()

    async def _graph(self) -> object:
        return await self._live().graph.revision()

    def watermarks(self) -> Watermarks:
        """Return how far each store is."""
        schedule, unread = self._live().builder.schedule, self._intake.end - self._intake.reconciled
        now = self._clock()

        def mark(*queues: Queue) -> str:
            oldest = (self._intake.behind_since, schedule.oldest(*queues) if queues else "")
            return min((time for time in oldest if time), default=now)

        return Watermarks(
            records=mark(),
            text=mark("text", "live"),
            chunks=mark(*_WORK),
            graph=mark(*_WORK),
            pending=schedule.unfinished(*_WORK) + unread,
            pending_text=schedule.unfinished("text") + unread,
            relinks=schedule.unfinished("relink"),
        )

    def paused(self) -> list[str]:
        """Return why indexing stands still; nothing while it goes on."""
        return [reason for reason in (self._intake.failure, self._live().builder.failure) if reason]

    async def health(self) -> Health:
        """Say whether the stores answer."""
        return Health(stores=await self._stores.states(), paused=self.paused())

    async def signals(self, outdated: list[str]) -> Signals:
        """Return what freshness pages and metrics show; `outdated` are parts built by other versions."""
        stages = self._stages()
        warnings = [f"indexing is paused: {reason}" for reason in self.paused()]
        if outdated:
            warnings.append(f"the indexes were built with another {', '.join(outdated)}: run `shinsen replay`")
        return Signals(
            times=self.times.figures(),
            stages=stages,
            dead_letters=(await self._counts.get())["dead_letters"],
            oldest_unapplied=min((stage.oldest for stage in stages if stage.oldest), default=""),
            warnings=warnings,
            outdated=outdated,
        )

    def _stages(self) -> list[StageLag]:
        """Return the two stages that one process has, with itself as their worker."""
        intake, schedule = self._intake, self._live().builder.schedule
        unread = intake.end - intake.reconciled
        return [
            StageLag(stage="reconcile", group="", members=1, lag=unread, oldest=intake.behind_since),
            StageLag(
                stage="index", group="", members=1, lag=schedule.unfinished(*_WORK), oldest=schedule.oldest(*_WORK)
            ),
        ]
