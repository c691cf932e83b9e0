"""Intake: from bytes at the door to records. Decode, refuse or log; then, in log order, reconcile."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from pipeline.clock import Clock
from pipeline.dead_letters import LETTER_HEADER, RETRY_HEADER, raw_letter, refused_event_id
from pipeline.decoding import admit
from pipeline.errors import BackendUnavailable, Backpressure, InvalidEvent
from pipeline.mapping import Mappings
from pipeline.ports.change_log import ChangeLog, LoggedEvent
from pipeline.ports.runtime import Submission
from pipeline.ports.state import State
from pipeline.reconcile import Arrived, Reconciler
from pipeline.sources.epochs import SourceEpochs
from pipeline.submissions import accepted, refused
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome
from schemas.record import Record

log = structlog.get_logger(__name__)

CONSUMER = "intake"
BATCH = 256
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0


class Intake:
    """The door and the reader of the change log of the embedded profile."""

    def __init__(
        self,
        change_log: ChangeLog,
        state: State,
        mappings: Mappings,
        *,
        max_event: int,
        max_backlog: int,
        clock: Clock,
        advanced: Callable[[Sequence[Record], str], Awaitable[None]],
        progressed: Callable[[], None],
    ) -> None:
        self._log, self._state, self._mappings = change_log, state, mappings
        self._max_event, self._max_backlog = max_event, max_backlog
        self._clock, self._advanced, self._progressed = clock, advanced, progressed
        self._reconciler = Reconciler(state)
        self._wake = asyncio.Event()
        self.end = 0
        """Offset of the last logged event."""
        self.reconciled = 0
        """Offset up to which every event is reconciled."""
        self.behind_since = ""
        """Arrival time of the oldest event not yet reconciled; empty when there is none."""
        self.failure = ""
        self._epochs = SourceEpochs([])

    async def open(self) -> None:
        """Find out where the last run stopped."""
        self.end, self.reconciled = await self._log.end(), await self._state.offset(CONSUMER)
        rest = await self._log.read(self.reconciled, 1)
        self.behind_since = rest[0].received_at if rest else ""
        await self.read_epochs()

    async def read_epochs(self) -> None:
        """Take notice of new epochs of sources."""
        self._epochs = SourceEpochs(await self._state.epochs())

    async def places(self, source: str) -> dict[str, int]:
        """Return where the next event will be, of any source."""
        return {"log": self.end + 1}

    async def submit(self, events: Sequence[RawEvent]) -> list[Submission]:
        """Take events in order; what is accepted is in the log, durably, on return."""
        waiting = self.end - self.reconciled
        # A batch beyond the limit alone is taken when nothing waits: sent again, it would never become smaller.
        if waiting > 0 and waiting + len(events) > self._max_backlog:
            raise Backpressure(
                f"{waiting} events wait to be read (limit {self._max_backlog}); send again later",
                retry_after=2.0,
            )
        now_in = self._epochs.newest()
        decoded = await asyncio.to_thread(
            lambda: [admit(raw, self._mappings, self._max_event, now_in) for raw in events]
        )
        taken = [raw for raw, d in zip(events, decoded, strict=True) if not isinstance(d, InvalidEvent)]
        now = self._clock()
        offsets = iter(await self._log.append(taken, now))
        self._logged(len(taken), now)  # at once: what is logged is read even if the letters fail below
        submissions: list[Submission] = []
        letters: list[DeadLetter] = []
        for index, (raw, result) in enumerate(zip(events, decoded, strict=True)):
            if isinstance(result, InvalidEvent):
                letter = raw_letter(refused_event_id(raw), raw, result, now)
                letters.append(letter)
                submissions.append(refused(index, result, letter))
            else:
                submissions.append(accepted(index, logged_id(raw, next(offsets)), result))
        if letters:
            await self._state.bury(letters)
        return submissions

    def _logged(self, number: int, now: str) -> None:
        if number:
            self.end += number
            self.behind_since = self.behind_since or now
            self._wake.set()

    async def run(self) -> None:
        """Read the log for ever; when a store is down, wait longer and longer and drop nothing."""
        pause = FIRST_PAUSE
        while True:
            try:
                found = await self.step()
                self.failure, pause = "", FIRST_PAUSE
            except BackendUnavailable as error:
                self.failure = str(error)
                log.warning("intake_paused", reason=str(error), seconds=pause)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            except Exception as error:  # a bug: nothing is lost, and it must be seen
                self.failure = f"{type(error).__name__}: {error}"
                log.exception("intake_failed", seconds=LONGEST_PAUSE)
                await asyncio.sleep(LONGEST_PAUSE)
                continue
            if not found:
                await self._wake.wait()

    async def step(self) -> bool:
        """Reconcile the next batch of the log; False when there is none. Safe to repeat after a crash."""
        self._wake.clear()
        batch = await self._log.read(self.reconciled, BATCH)
        if not batch:
            self.behind_since = ""
            return False
        arrived, ended, letters = await asyncio.to_thread(self._decode_batch, batch)

        async def hand_on(lifted: Sequence[Record]) -> None:
            await self._advanced(lifted, batch[0].received_at)

        result = await self._reconciler.reconcile(arrived, hand_on=hand_on)
        raws = {event_id(logged): logged.raw for logged in batch}
        now = self._clock()
        retried = [logged.raw.headers[LETTER_HEADER] for logged in batch if LETTER_HEADER in logged.raw.headers]
        if retried:  # before the new letters: what is refused again is open again
            await self._state.resolve(retried)
        letters += [raw_letter(a.event_id, raws[_base(a.event_id, raws)], error, now) for a, error in result.refused]
        if letters:
            await self._state.bury(letters)
        ended += result.ended
        if ended:
            await self._state.announce(ended)
        # The offset last: whatever is above it is done again after a crash, and ends the same way.
        await self._state.commit_offset(CONSUMER, batch[-1].offset)
        await self._advanced(result.advanced, batch[0].received_at)
        # After they are scheduled, so that nobody finds neither a backlog nor work in between.
        self.reconciled = batch[-1].offset
        self._progressed()
        return True

    def _decode_batch(self, batch: Sequence[LoggedEvent]) -> tuple[list[Arrived], list[Outcome], list[DeadLetter]]:
        arrived: list[Arrived] = []
        ended: list[Outcome] = []
        letters: list[DeadLetter] = []
        for logged in batch:
            base = event_id(logged)
            events = admit(logged.raw, self._mappings, self._max_event, self._epochs.of(base))
            if isinstance(events, InvalidEvent):
                letters.append(raw_letter(base, logged.raw, events, self._clock()))
            elif not events:
                # Tombstones, heartbeats and transaction markers say nothing new.
                ended.append(Outcome(event=base, document="", position="", outcome="duplicate"))
            else:
                arrived.extend(Arrived(_numbered(base, n), event) for n, event in enumerate(events))
        return arrived, ended, letters


def event_id(logged: LoggedEvent) -> str:
    """Return the id under which a logged event's outcome is announced."""
    return logged_id(logged.raw, logged.offset)


def logged_id(raw: RawEvent, offset: int) -> str:
    """Return the id of an event at an offset of the log: its own, or the one that a retried payload first had."""
    return raw.headers.get(RETRY_HEADER) or f"log:{offset}"


def _numbered(base: str, number: int) -> str:
    return base if number == 0 else f"{base}.{number}"


def _base(event: str, raws: dict[str, RawEvent]) -> str:
    return event if event in raws else event.rsplit(".", 1)[0]
