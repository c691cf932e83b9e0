"""The pool of model worker processes: all model work happens there, off the event loop."""

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import structlog

from pipeline.errors import BackendUnavailable
from pipeline.model_workers.process import WorkerDied, WorkerProcess, WorkerRaised
from pipeline.model_workers.queue import Call, JobKind, Unit, WorkQueue
from pipeline.text.normalize import without_surrogates
from schemas.change_event import Lane

T = TypeVar("T")

MOST_ATTEMPTS = 3
"""A batch whose worker died is tried again text by text; a text that was there three times fails its call."""

_log = structlog.get_logger(__name__)


class WorkerPool:
    """`size` workers for all kinds of job and one more for quick jobs only (questions never wait).

    With several workers each prefers a kind of its own, so that the two models of one document run
    side by side and each stays in the caches of its core; it helps with other kinds when it has
    nothing to do. Usable from any event loop and thread. Processes start with the first job.
    """

    def __init__(self, size: int | None = None, *, capacity: int = 4_000_000, patience_s: float = 120.0) -> None:
        """`size`: None means one per core. `capacity`: characters that may wait in each lane.

        `patience_s`: a batch may take this long, and 20 ms more for each character, before its worker
        is taken for stuck and killed.
        """
        self._size = size or os.cpu_count() or 1
        self._patience_s = patience_s
        self._queue = WorkQueue(capacity)
        self._kinds: list[JobKind[Any]] = []
        self._threads: list[threading.Thread] = []
        self._processes: dict[int, WorkerProcess] = {}
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False
        self._restarts = 0

    def register(self, *kinds: JobKind[Any]) -> None:
        """Make kinds known, before the first job. Each call is one user: see `release`."""
        with self._lock:
            self._kinds += kinds
            self._users += 1

    async def release(self) -> None:
        """Say that one user is done; the last one closes the pool."""
        with self._lock:
            self._users -= 1
            last = self._users <= 0
        if last:
            await self.close()

    async def run(self, kind: JobKind[T], texts: Sequence[str], lane: Lane = "live") -> list[T]:
        """Return one result per text, in order. Waits while the lane is full.

        Lone surrogates reach the worker as U+FFFD. Raises BackendUnavailable when a text killed its
        worker, or made the model raise, three times, and when the pool is closed.
        """
        if not texts:
            return []
        call = Call(kind, [without_surrogates(text) for text in texts], lane)
        units = list(_batches(call))
        cost = sum(unit.cost for unit in units)
        self.start()
        await self._enter(lane, cost)
        if not self._queue.put(units):
            self._queue.release(lane, cost)
            raise BackendUnavailable("the model workers are stopped")
        return await asyncio.wrap_future(call.future)

    async def _enter(self, lane: Lane, cost: int) -> None:
        entry = self._queue.room(lane, cost)
        if entry is None:  # nearly always
            return
        try:
            await asyncio.wrap_future(entry)
        except asyncio.CancelledError:
            if not entry.cancelled() and entry.done():  # cancelled in the moment that room was given
                self._queue.release(lane, cost)
            raise

    def start(self, *, warm: bool = False) -> None:
        """Start the workers if they are not running; `warm` loads each one's own models at once, in the background."""
        with self._lock:
            if self._closed:
                raise BackendUnavailable("the model workers are stopped")
            if self._threads:
                return
            for number in range(self._size + 1):
                args = (number, self._own(number), warm)
                self._threads.append(
                    threading.Thread(target=self._serve, args=args, daemon=True, name=f"model-worker-{number}")
                )
            for thread in self._threads:
                thread.start()

    async def close(self) -> None:
        """Stop all workers; calls that wait end with BackendUnavailable. Idempotent."""
        await asyncio.to_thread(self._stop)

    def status(self) -> dict[str, Any]:
        """Return `workers` (process ids), `restarts`, and `waiting` (batches) per lane."""
        with self._lock:
            pids = [process.pid for _, process in sorted(self._processes.items())]
        return {"workers": pids, "restarts": self._restarts, "waiting": self._queue.waiting()}

    def _own(self, number: int) -> frozenset[str]:
        if number == self._size:
            return frozenset(kind.name for kind in self._kinds if kind.quick)
        heavy = [kind.name for kind in self._kinds if not kind.quick]
        mine = heavy[number :: self._size] or heavy[number % len(heavy) :][:1] if heavy else []
        return frozenset(mine)

    def _serve(self, number: int, own: frozenset[str], warm: bool) -> None:
        """The thread of one worker: it alone talks to that process, and replaces it when it died."""
        only_quick = number == self._size
        try:
            if warm:
                self._warm(number, own)
            while (unit := self._queue.take(own, _quick_jobs if only_quick else _other_jobs)) is not None:
                if not unit.call.future.done():
                    self._work(number, unit)
                self._queue.release(unit.call.lane, unit.cost)
        finally:
            self._discard(number)

    def _warm(self, number: int, own: frozenset[str]) -> None:
        for kind in self._kinds:
            if kind.name in own:
                try:
                    self._process(number).ask(kind.definition, [], self._patience_s)
                except (WorkerDied, WorkerRaised, OSError) as error:
                    _log.warning("model_not_loaded", kind=kind.name, reason=str(error))
                    self._discard(number)

    def _work(self, number: int, unit: Unit) -> None:
        texts = unit.texts
        patience_s = self._patience_s + 0.02 * unit.cost
        try:
            unit.call.fill(unit.indices, self._process(number).ask(unit.call.kind.definition, texts, patience_s))
        except WorkerRaised as error:
            self._again(unit, str(error))
        except (WorkerDied, OSError) as error:
            self._discard(number)
            self._restarts += 1
            self._again(unit, f"its worker died: {error}")
        except Exception as error:  # noqa: BLE001  this thread must go on, and the caller must hear of it
            unit.call.fail(BackendUnavailable(f"{unit.call.kind.name}: {error!r}"))

    def _again(self, unit: Unit, reason: str) -> None:
        """Put the texts of a lost batch back one by one, so that a bad one fails alone."""
        if self._closed:
            unit.call.fail(BackendUnavailable("the model workers are stopped"))
            return
        attempts = unit.attempts + 1
        _log.warning(
            "model_batch_lost", kind=unit.call.kind.name, texts=len(unit.indices), attempt=attempts, reason=reason
        )
        if attempts >= MOST_ATTEMPTS:
            unit.call.fail(BackendUnavailable(f"{unit.call.kind.name} failed {attempts} times: {reason}"))
            return
        singles = [Unit(unit.call, (index,), attempts, unit.turn) for index in unit.indices]
        self._queue.release(unit.call.lane, -unit.cost)  # room for the singles: this unit's own is given back later
        if not self._queue.put_back(singles):
            unit.call.fail(BackendUnavailable("the model workers are stopped"))

    def _process(self, number: int) -> WorkerProcess:
        with self._lock:
            if self._closed:
                raise WorkerDied("the pool is closed")
            if number not in self._processes:
                self._processes[number] = WorkerProcess()
            return self._processes[number]

    def _discard(self, number: int) -> None:
        with self._lock:
            process = self._processes.pop(number, None)
        if process is not None:
            process.close()

    def _stop(self) -> None:
        with self._lock:
            self._closed = True
            processes = list(self._processes.values())
        for unit in self._queue.close():
            unit.call.fail(BackendUnavailable("the model workers are stopped"))
        for process in processes:
            process.kill()
        for thread in self._threads:
            thread.join(timeout=5)


def _quick_jobs(lane: Lane, kind: JobKind[Any]) -> bool:
    return kind.quick


def _other_jobs(lane: Lane, kind: JobKind[Any]) -> bool:
    """Workers for heavy jobs help with quick ones in bulk only: a question must not wait until they load its model."""
    return lane == "bulk" or not kind.quick


def _batches(call: Call[Any]) -> Iterator[Unit]:
    """Cut the texts of a call into batches of the kind's size, at least one text each."""
    batch: list[int] = []
    size = 0
    for index, text in enumerate(call.texts):
        if batch and size + len(text) > call.kind.batch_characters:
            yield Unit(call, tuple(batch))
            batch, size = [], 0
        batch.append(index)
        size += len(text)
    yield Unit(call, tuple(batch))
