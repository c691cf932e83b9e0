"""The queue before the model workers: two lanes, several kinds of job, a bound, and no event loop of its own."""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

import msgspec

from pipeline.model_workers.process import Definition
from schemas.change_event import Lane

T = TypeVar("T")


class JobKind(msgspec.Struct, Generic[T], frozen=True):
    """A kind of job that workers know how to do."""

    definition: Definition
    decode: Callable[[bytes], T]
    """Read one result; runs in a thread of the pool, not on the event loop."""
    batch_characters: int
    """Texts are sent together up to this size, so that no batch keeps live work waiting for long."""
    quick: bool = False
    """Milliseconds: the worker that is kept free for such jobs takes it too."""

    @property
    def name(self) -> str:
        """Name of the kind."""
        return self.definition.kind


class Call(Generic[T]):
    """One call of the pool: its texts may be spread over batches and workers."""

    def __init__(self, kind: JobKind[T], texts: Sequence[str], lane: Lane) -> None:
        self.kind, self.texts, self.lane = kind, texts, lane
        self.future: Future[list[T]] = Future()
        self._results: list[T | None] = [None] * len(texts)
        self._missing = len(texts)
        self._lock = threading.Lock()

    def fill(self, indices: Sequence[int], results: Sequence[bytes]) -> None:
        """Put results in their places; the last ones complete the call."""
        decoded = [self.kind.decode(result) for result in results]
        with self._lock:
            for index, result in zip(indices, decoded, strict=True):
                self._results[index] = result
            self._missing -= len(indices)
            complete = self._missing == 0
        if complete:
            with suppress(InvalidStateError):  # the caller may have gone away
                self.future.set_result(cast("list[T]", self._results))

    def fail(self, error: Exception) -> None:
        """End the call with an error, unless it has ended already."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class Unit(msgspec.Struct, frozen=True):
    """What a worker gets at once: some texts of one call."""

    call: Call[Any]
    indices: tuple[int, ...]
    attempts: int = 0
    turn: int = 0
    """Smaller goes first; given by the queue."""

    @property
    def texts(self) -> list[str]:
        """The texts."""
        return [self.call.texts[i] for i in self.indices]

    @property
    def cost(self) -> int:
        """What it takes of the queue's room."""
        return sum(len(self.call.texts[i]) + 1 for i in self.indices)


Allowed = Callable[[Lane, JobKind[Any]], bool]


class _Waiting(msgspec.Struct, frozen=True, eq=False):
    """A thread that waits for work."""

    allowed: Allowed
    called: threading.Condition


class WorkQueue:
    """Units by lane and kind. Safe from any thread; nothing but `take` blocks for long.

    Inside a lane calls are served fairly: each unit of a call is four turns behind the one before,
    so that a small call overtakes the rest of a big one, and yet the big one goes on.
    """

    def __init__(self, capacity: int) -> None:
        """`capacity`: characters per lane that may wait or be worked on."""
        self._capacity = capacity
        self._used: dict[Lane, int] = {"live": 0, "bulk": 0}
        self._entrance: dict[Lane, deque[tuple[int, Future[None]]]] = {"live": deque(), "bulk": deque()}
        self._units: dict[tuple[Lane, str], list[tuple[int, int, Unit]]] = {}
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._calls = 0
        self._count = 0
        self._closed = False

    def room(self, lane: Lane, cost: int) -> "Future[None] | None":
        """Take room for so much; where it must be waited for, return a future that is done when it is taken.

        First come, first served. A cost over the whole capacity waits until the lane is empty. A closed queue lets
        all through.
        """
        with self._lock:
            if not self._entrance[lane] and self._fits(lane, cost):
                self._used[lane] += cost
                return None
            entry: Future[None] = Future()
            self._entrance[lane].append((cost, entry))
            self._admit(lane)
        return entry

    def release(self, lane: Lane, cost: int) -> None:
        """Give room back; a negative cost takes it at once, for units that are put back."""
        with self._lock:
            self._used[lane] -= cost
            self._admit(lane)

    def put(self, units: Sequence[Unit]) -> bool:
        """Add the units of one call; False when the queue is closed."""
        with self._lock:
            self._calls += 1
            first = self._calls
            return self._push(msgspec.structs.replace(unit, turn=first + 4 * n) for n, unit in enumerate(units))

    def put_back(self, units: Sequence[Unit]) -> bool:
        """Add units that were taken before, at their old turn; False when the queue is closed."""
        with self._lock:
            return self._push(units)

    def take(self, own: frozenset[str], allowed: Allowed) -> Unit | None:
        """Wait for a unit: live before bulk, kinds in `own` before others, then by turn. None when closed."""
        with self._lock:
            while not self._closed:
                unit = self._best(own, allowed)
                if unit is not None:
                    return unit
                self._wait(allowed)
            return None

    def close(self) -> list[Unit]:
        """Let nobody wait any more and return what was not taken; idempotent."""
        with self._lock:
            self._closed = True
            left = [unit for heap in self._units.values() for _, _, unit in heap]
            self._units.clear()
            self._admit("live")
            self._admit("bulk")
            for waiting in self._waiting:
                waiting.called.notify()
            return left

    def waiting(self) -> dict[str, int]:
        """Return how many units wait per lane."""
        with self._lock:
            lanes = ("live", "bulk")
            return {lane: sum(len(heap) for (of, _), heap in self._units.items() if of == lane) for lane in lanes}

    def _push(self, units: Iterable[Unit]) -> bool:
        if self._closed:
            return False
        for unit in units:
            self._count += 1
            heap = self._units.setdefault((unit.call.lane, unit.call.kind.name), [])
            heapq.heappush(heap, (unit.turn, self._count, unit))
        for waiting in self._waiting:  # whoever may take none of it sleeps on: to wake up for nothing costs, too
            if any(self._heads(waiting.allowed)):
                waiting.called.notify()
        return True

    def _wait(self, allowed: Allowed) -> None:
        """Sleep until something was put that may be taken, or the queue was closed."""
        waiting = _Waiting(allowed, threading.Condition(self._lock))
        self._waiting.append(waiting)
        waiting.called.wait()
        self._waiting.remove(waiting)

    def _heads(self, allowed: Allowed) -> Iterator[tuple[Lane, str, list[tuple[int, int, Unit]]]]:
        """Yield lane, kind and units of what may be taken."""
        for (lane, kind), heap in self._units.items():
            if heap and allowed(lane, heap[0][2].call.kind):
                yield lane, kind, heap

    def _best(self, own: frozenset[str], allowed: Allowed) -> Unit | None:
        heads = [((lane != "live", kind not in own, heap[0][0]), heap) for lane, kind, heap in self._heads(allowed)]
        if not heads:
            return None
        return heapq.heappop(min(heads, key=lambda head: head[0])[1])[2]

    def _fits(self, lane: Lane, cost: int) -> bool:
        return self._closed or not self._used[lane] or self._used[lane] + cost <= self._capacity

    def _admit(self, lane: Lane) -> None:
        entrance = self._entrance[lane]
        while entrance and self._fits(lane, entrance[0][0]):
            cost, entry = entrance.popleft()
            if entry.set_running_or_notify_cancel():
                self._used[lane] += cost
                entry.set_result(None)
