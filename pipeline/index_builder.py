"""Keeps the indexes of one generation up with the records: takes scheduled work, prepares it, publishes it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from pipeline.apply import Applier, Published
from pipeline.clock import Clock
from pipeline.dead_letters import record_letter
from pipeline.errors import BackendUnavailable, InvalidEvent
from pipeline.ports.state import State
from pipeline.prepare import Prepared, Preparer, Refused
from pipeline.schedule import Queue, Schedule, Taken
from schemas.change_event import Lane
from schemas.document import Stage
from schemas.record import Record

log = structlog.get_logger(__name__)

BATCH = 64
"""Documents handed to the pure steps or published at once."""
MAX_ATTEMPTS = 5
"""After so many failures of one document while others succeed it becomes a dead letter."""
MAX_LIVE = 200
"""New documents go on in the live queue up to this many waiting; a larger flood is a backlog."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
"""Back-off in seconds while a store or model does not answer."""


class Ready(msgspec.Struct):
    """A prepared document on its way to the publisher."""

    item: Taken
    prepared: Prepared
    published: "asyncio.Future[None]"


class IndexBuilder:
    """Runs four loops: live changes, text of new documents, everything else, and one publisher."""

    def __init__(
        self,
        state: State,
        preparer: Preparer,
        applier: Applier,
        *,
        staged: bool,
        workers: int,
        clock: Clock,
    ) -> None:
        self.generation, self.schedule = applier.generation, Schedule()
        self._state, self._preparer, self._applier = state, preparer, applier
        self._staged, self._clock = staged, clock
        self.on_progress: Callable[[], None] = lambda: None
        self._wake = asyncio.Event()
        self._ready: list[Ready] = []
        self._some_ready = asyncio.Event()
        self._room: dict[Lane, asyncio.Semaphore] = {
            "live": asyncio.Semaphore(4 * workers),
            "bulk": asyncio.Semaphore(2 * workers),
        }
        self._tasks: set[asyncio.Task[None]] = set()
        self._batch = 2
        self.failure = ""
        """What a store or model said when it last did not answer; empty while all is well."""

    async def open(self) -> None:
        """Put documents back to work whose index changes were lost."""
        lost = await self._applier.open()
        if lost:
            log.warning("indexes_behind", generation=self.generation, documents=lost)

    def becomes_live(self, on_progress: Callable[[], None]) -> None:
        """Announce outcomes and stage new documents from now on."""
        self._staged, self._applier.announces, self.on_progress = True, True, on_progress

    def start(self) -> None:
        """Start the loops."""
        for loop in (self._live, self._text, self._backlog):
            self._spawn(self._forever(loop))
        self._spawn(self._forever(self._publish_ready))

    async def stop(self) -> None:
        """End the loops; work under way is dropped and found again at the next start."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def add(self, records: Sequence[Record], arrived: str) -> None:
        """Schedule records that have advanced."""
        stages = await self._state.stages(self.generation, [r.document for r in records])
        for record in records:
            self.schedule.add(record.document, self._queue(record, stages.get(record.document, "")), arrived)
        self.wake()

    async def add_pending(self, arrived: Callable[[Sequence[Record]], Awaitable[str]]) -> int:
        """Schedule all that the state store says is behind; return how many documents that is."""
        after, number = "", 0
        while page := await self._state.pending(self.generation, after=after):
            records = await self._state.records([p.document for p in page])
            since = await arrived(list(records.values()))
            for pending in page:
                queue = self._queue(records[pending.document], pending.stage)
                self.schedule.add(pending.document, "full" if pending.stage == "text" else queue, since)
            after, number = page[-1].document, number + len(page)
        self.wake()
        return number

    def _queue(self, record: Record, stage: str) -> Queue:
        if not stage and record.op == "upsert":
            return "text" if self._staged else "full"
        return "live" if record.lane == "live" else "full"

    def wake(self) -> None:
        """Let the loops look for work."""
        self._wake.set()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forever(self, step: Callable[[], Awaitable[bool]]) -> None:
        """Run `step` again and again; sleep until woken when it found nothing, back off when something is down."""
        pause = FIRST_PAUSE
        while True:
            try:
                found = await step()
                pause = FIRST_PAUSE
            except BackendUnavailable as error:
                self._note_failure(error, pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if not found:
                self._wake.clear()
                if not self.schedule.waiting("live", "text", "full", "relink") and not self._ready:
                    await self._wake.wait()
                else:
                    await asyncio.wait({asyncio.ensure_future(self._wake.wait())}, timeout=0.05)

    def _note_failure(self, error: BaseException, pause: float) -> None:
        self.failure = str(error)
        log.warning("indexing_paused", generation=self.generation, reason=str(error), seconds=pause)

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
            await self._failed(items, error)
            return 0

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
                await self._bury(item, result.record, result.error, "map")
            elif result.missing:
                missing += 1
                await self._room[lane].acquire()
                self._spawn(self._heavy(item, result, lane))
            else:
                ready.append(self._hand_over(item, result))
        if ready:
            await asyncio.gather(*(r.published for r in ready))
        return missing

    async def _heavy(self, item: Taken, prepared: Prepared, lane: Lane) -> None:
        try:
            done = await self._preparer.heavy(prepared, lane)
            await self._hand_over(item, done).published
        except BackendUnavailable as error:
            self._note_failure(error, FIRST_PAUSE)
            await asyncio.sleep(FIRST_PAUSE * 2 ** min(item.attempts, 7))
            await self._failed([item], error)
        except Exception as error:  # noqa: BLE001 - one document's bug must not stop the others
            await self._failed([item], error)
        finally:
            self._room[lane].release()

    def _hand_over(self, item: Taken, prepared: Prepared) -> Ready:
        ready = Ready(item, prepared, asyncio.get_running_loop().create_future())
        self._ready.append(ready)
        self._wake.set()
        return ready

    async def _publish_ready(self) -> bool:
        batch = self._ready[:BATCH]
        if not batch:
            return False
        del self._ready[:BATCH]
        try:
            published = await self._applier.publish([ready.prepared for ready in batch])
        except Exception as error:
            for ready in batch:
                ready.published.set_exception(error)
                ready.published.exception()  # taken notice of, whoever waits
            if isinstance(error, BackendUnavailable):
                raise
            return True
        self.failure = ""
        self._account(batch, published)
        return True

    def _account(self, batch: Sequence[Ready], published: Published) -> None:
        for ready in batch:
            then: Queue | None = None
            if ready.prepared.stage == "text":
                few = self.schedule.unfinished("live") < MAX_LIVE
                then = "live" if few and ready.prepared.record.lane == "live" else "full"
            self.schedule.done(ready.item, then=then)
            if not ready.published.done():
                ready.published.set_result(None)
        now = self._clock()
        for document in published.relinks:
            self.schedule.add(document, "relink", now)
        self._wake.set()
        self.on_progress()

    def _again(self, items: Sequence[Taken]) -> None:
        for item in items:
            self.schedule.again(item)
        self._wake.set()

    async def _failed(self, items: Sequence[Taken], error: Exception) -> None:
        """Try again one by one; a document that keeps failing is put aside for a person."""
        log.error("document_failed", documents=[i.document for i in items], exc_info=error)
        for item in items:
            if item.attempts + 1 < MAX_ATTEMPTS or isinstance(error, BackendUnavailable):
                self.schedule.again(item)
                continue
            records = await self._state.records([item.document])
            reason = f"{item.document}: failed {MAX_ATTEMPTS} times: {type(error).__name__}: {error}; see the log"
            await self._bury(item, records[item.document], InvalidEvent("internal_error", reason), "apply")
        self._wake.set()

    async def _bury(self, item: Taken, record: Record, error: InvalidEvent, stage: str) -> None:
        letters = record_letter(record, error, stage, self._clock())
        await self._state.bury([letters.letter])
        await self._state.announce(letters.superseded)
        self.schedule.done(item)
        self.on_progress()
