"""Keeps the indexes of one generation up with the records: takes scheduled work, prepares it, publishes it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import structlog

from pipeline.apply import Applier, Published
from pipeline.change_times import ChangeTimes
from pipeline.clock import Clock
from pipeline.dead_letters import record_letter
from pipeline.embedded.loops import FIRST_PAUSE, LONGEST_PAUSE, Loops
from pipeline.embedded.schedule import QUEUES, Queue, Schedule, Taken, queue_of
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.ports.state import Pending, State
from pipeline.prepare import Prepared, Preparer, Refused
from schemas.change_event import Lane
from schemas.document import Stage
from schemas.record import Record

log = structlog.get_logger(__name__)

BATCH = 64
"""Documents handed to the pure steps or published at once."""
MAX_ATTEMPTS = 5
"""After so many failures of one document while others succeed it becomes a dead letter."""
MODEL_ATTEMPTS = 2
"""After so many, a document on which the models fail is compared with a text that they can take."""
MAX_LIVE = 16
"""New documents go on in the live queue up to this many waiting; a larger flood is a backlog."""


class Ready(msgspec.Struct):
    """A prepared document on its way to the publisher."""

    item: Taken
    prepared: Prepared
    published: "asyncio.Future[None]"


class IndexBuilder:
    """Runs loops for live changes, for the text of new documents and for everything else, and one publisher."""

    def __init__(
        self, state: State, preparer: Preparer, applier: Applier, *, staged: bool, workers: int, clock: Clock
    ) -> None:
        self.generation, self.schedule = applier.generation, Schedule()
        self._state, self._preparer, self._applier = state, preparer, applier
        self._staged, self._clock = staged, clock
        self.on_progress: Callable[[], None] = lambda: None
        self.when_idle: Callable[[], Awaitable[bool]] | None = None
        """A step that is taken while nothing else is to do."""
        self._times: ChangeTimes | None = None
        self._ready: list[Ready] = []
        self._loops = Loops(self.generation, self._busy)
        self.wake = self._loops.wake
        self._room: dict[Lane, asyncio.Semaphore] = {
            "live": asyncio.Semaphore(4 * workers),
            "bulk": asyncio.Semaphore(2 * workers),
        }
        self._batch = 2

    async def open(self) -> None:
        """Put documents back to work whose index changes were lost."""
        lost = await self._applier.open()
        if lost:
            log.warning("indexes_behind", generation=self.generation, documents=lost)

    def becomes_live(self, on_progress: Callable[[], None], times: ChangeTimes) -> None:
        """Announce outcomes and stage new documents from now on."""
        self._staged, self._applier.announces = True, True
        self.on_progress, self._times = on_progress, times

    def retires(self) -> None:
        """Follow changes without announcing anything, from now on."""
        self._staged, self._applier.announces = False, False
        self.on_progress, self._times = lambda: None, None

    def start(self) -> None:
        """Start the loops."""
        # Twice where batches are large: one is prepared while the other is published.
        for step in (self._live, self._text, self._text, self._backlog, self._backlog, self._publish_ready, self._idle):
            self._loops.start(step)

    async def stop(self) -> None:
        """End the loops; work under way is dropped and found again at the next start."""
        await self._loops.stop()

    @property
    def failure(self) -> str:
        """What a store or model said when it last did not answer; empty while all is well."""
        return self._loops.failure

    def _busy(self) -> bool:
        return bool(self._ready or self.schedule.waiting(*QUEUES))

    async def add(self, records: Sequence[Record], arrived: str) -> None:
        """Schedule records that have advanced."""
        stages = await self._state.stages(self.generation, [r.document for r in records])
        for record in records:
            self.schedule.add(record.document, queue_of(record, stages.get(record.document, ""), self._staged), arrived)
        self.wake()

    def add_behind(self, page: Sequence[Pending], records: Mapping[str, Record], arrived: str) -> None:
        """Schedule what the state store says is behind."""
        for pending in page:
            queue = queue_of(records[pending.document], pending.stage, self._staged)
            self.schedule.add(pending.document, "full" if pending.stage == "text" else queue, arrived)
        self.wake()

    async def add_again(self, documents: Sequence[str]) -> None:
        """Schedule documents whatever the indexes have of them, behind all changes."""
        for document in documents:
            self.schedule.add(document, "relink", self._clock())
        self.wake()

    async def _live(self) -> bool:
        return await self._take("live", BATCH, "full", "live") is not None

    async def _text(self) -> bool:
        return await self._take("text", BATCH, "text", "bulk") is not None

    async def _backlog(self) -> bool:
        if self.schedule.unfinished("text"):
            return False  # text of new documents first: it makes them searchable
        missing = await self._take("full", self._batch, "full", "bulk")
        if missing is not None:
            # Cached documents go through in large batches, cold ones a few at a time, newest first.
            self._batch = min(2 * self._batch, BATCH) if not missing else 2
            return True
        return await self._take("relink", BATCH, "full", "bulk") is not None

    async def _idle(self) -> bool:
        return self.when_idle is not None and not self.schedule.unfinished(*QUEUES) and await self.when_idle()

    async def _take(self, queue: Queue, limit: int, stage: Stage, lane: Lane) -> int | None:
        """Work on what waits in a queue; return how many documents need models, None when nothing waits."""
        items = self.schedule.take(queue, limit)
        if not items:
            return None
        try:
            return await self._work(items, stage, lane)
        except BackendUnavailable:
            self._again(items)
            raise
        except Exception as error:  # noqa: BLE001 - one document's bug must not stop the others
            await self._one_by_one(items, stage, lane, error)
            return 0

    async def _one_by_one(self, items: Sequence[Taken], stage: Stage, lane: Lane, error: Exception) -> None:
        """Find out which document of a batch is the one that fails."""
        for number, item in enumerate(items):
            try:
                if len(items) > 1:
                    await self._work([item], stage, lane)
                    continue
            except BackendUnavailable:
                self._again(items[number:])
                raise
            except Exception as own:  # noqa: BLE001 - see above
                error = own
            await self._failed(item, error)

    async def _work(self, items: Sequence[Taken], stage: Stage, lane: Lane) -> int:
        records = await self._state.records([item.document for item in items])
        there = [item for item in items if item.document in records]
        for item in set(items) - set(there):
            self.schedule.done(item)
        prepared = await self._preparer.light([records[item.document] for item in there], stage, lane)
        ready: list[Ready] = []
        missing = 0
        for item, result in zip(there, prepared, strict=True):
            if isinstance(result, Refused):
                ready.append(await self._bury(item, result.record, result.error, "map"))
            elif result.missing:
                missing += 1
                await self._room[lane].acquire()
                self._loops.spawn(self._heavy(item, result, lane))
            else:
                ready.append(self._hand_over(item, result))
        ends = await asyncio.gather(*(r.published for r in ready), return_exceptions=True)
        for own, error in zip(ready, ends, strict=True):
            if isinstance(error, Exception):
                await self._failed(own.item, error)
        return missing

    async def _heavy(self, item: Taken, prepared: Prepared, lane: Lane) -> None:
        try:
            done = await self._modelled(item, prepared, lane)
            if done is not None:
                await self._hand_over(item, done).published
        except BackendUnavailable as error:
            await self._later(item, error)
        except Exception as error:  # noqa: BLE001 - one document's bug must not stop the others
            await self._failed(item, error)
        finally:
            self._room[lane].release()

    async def _modelled(self, item: Taken, prepared: Prepared, lane: Lane) -> Prepared | None:
        """Do the model work. A text that the models cannot take, though they take others, is a dead letter."""
        try:
            return await self._preparer.heavy(prepared, lane)
        except BackendUnavailable as error:
            if item.attempts < MODEL_ATTEMPTS or not await self._preparer.models_work():
                raise
            reason = f"{item.document}: the models fail on this text and on no other: {error}; mend or shorten it"
            buried = await self._bury(item, prepared.record, InvalidEvent("model_failed", reason), "apply")
            await buried.published
            return None

    async def _later(self, item: Taken, error: BackendUnavailable) -> None:
        self._loops.note_failure(error, FIRST_PAUSE)
        await asyncio.sleep(min(FIRST_PAUSE * 2**item.attempts, LONGEST_PAUSE))
        self._again([item])

    def _hand_over(self, item: Taken, prepared: Prepared) -> Ready:
        ready = Ready(item, prepared, asyncio.get_running_loop().create_future())
        self._ready.append(ready)
        self.wake()
        return ready

    async def _publish_ready(self) -> bool:
        batch = self._ready[:BATCH]
        if not batch:
            return False
        del self._ready[:BATCH]
        try:
            await self._publish(batch)
        except BackendUnavailable:
            raise
        except Exception:  # noqa: BLE001 - it waits in the future of the document that it belongs to
            for ready in batch if len(batch) > 1 else []:
                with contextlib.suppress(Exception):
                    await self._publish([ready])
        return True

    async def _publish(self, batch: Sequence[Ready]) -> None:
        try:
            published = await self._applier.publish([ready.prepared for ready in batch])
        except Exception as error:
            if len(batch) == 1 or isinstance(error, BackendUnavailable):
                for ready in batch:
                    ready.published.set_exception(error)
                    ready.published.exception()  # taken notice of, whoever waits
            raise
        self._loops.failure = ""
        self._account(batch, published)

    def _account(self, batch: Sequence[Ready], published: Published) -> None:
        now = self._clock()
        for ready, visible in zip(batch, published.committed, strict=True):
            then: Queue | None = None
            if self._times and visible and not ready.prepared.withdrawn:
                self._times.published(ready.item.document, ready.prepared.stage, self.schedule.arrival(ready.item), now)
            if ready.prepared.stage == "text":
                few = self.schedule.unfinished("live") < MAX_LIVE
                then = "live" if few and ready.prepared.record.lane == "live" else "full"
            self.schedule.done(ready.item, then=then)
            if not ready.published.done():
                ready.published.set_result(None)
        for document in (*published.relinks, *published.again):
            self.schedule.add(document, "relink", now)
        self.wake()
        self.on_progress()

    def _again(self, items: Sequence[Taken]) -> None:
        for item in items:
            self.schedule.again(item)
        self.wake()

    async def _failed(self, item: Taken, error: Exception) -> None:
        """Let it be tried again; a document that keeps failing is put aside for a person."""
        try:
            if not isinstance(error, BackendUnavailable):
                log.error("document_failed", document=item.document, exc_info=error)
                if item.attempts + 1 >= MAX_ATTEMPTS:
                    await self._give_up(item, error)
                    return
        except Exception:
            log.exception("giving_up_failed", document=item.document)
        self.schedule.again(item)
        self.wake()

    async def _give_up(self, item: Taken, error: Exception) -> None:
        record = (await self._state.records([item.document]))[item.document]
        reason = f"{item.document}: failed {MAX_ATTEMPTS} times: {type(error).__name__}: {error}; see the log"
        ready = await self._bury(item, record, InvalidEvent("internal_error", reason), "apply")
        await ready.published

    async def _bury(self, item: Taken, record: Record, error: InvalidEvent, stage: str) -> Ready:
        """Keep the letter, and withdraw the document: an older version must not go on standing."""
        letters = record_letter(record, error, stage, self._clock())
        await self._state.bury([letters.letter])
        await self._state.announce(letters.superseded)
        return self._hand_over(item, Prepared(record=record, stage="full", withdrawn=True))
