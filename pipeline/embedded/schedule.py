"""The order of work in one process: changes first, then text of new documents, then vectors and facts, newest first."""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Literal

import msgspec

from schemas.record import Record

Queue = Literal["live", "text", "full", "relink"]
QUEUES: tuple[Queue, ...] = ("live", "text", "full", "relink")
"""The most urgent first."""

_SLACK = 1000
_NONE = object()


def queue_of(record: Record, stage: str, staged: bool) -> Queue:
    """Return where a record that advanced waits; `stage` is that of its document's committed version, if any."""
    if not stage and record.op == "upsert":
        return "text" if staged else "full"
    return "live" if record.lane == "live" else "full"


class Work(msgspec.Struct):
    """A document waiting or being worked on."""

    document: str
    arrived: str
    """Arrival time of its newest event: what watermarks are made of."""
    queue: Queue
    ticket: int
    """Grows with every change of the document, so that finished work cannot hide a newer change."""
    attempts: int = 0


class Taken(msgspec.Struct, frozen=True):
    """A document handed out, with the ticket to hand back."""

    document: str
    ticket: int
    attempts: int


class Schedule:
    """Which documents of one generation wait for what. In memory: it can be made again from the state store."""

    def __init__(self) -> None:
        self._work: dict[str, Work] = {}
        self._queues: dict[Queue, OrderedDict[str, None]] = {queue: OrderedDict() for queue in QUEUES}
        self._ticket = 0
        self._numbers: Counter[Queue] = Counter()
        # Arrivals by queue, the earliest on top; entries that no longer hold are dropped when they come up.
        self._arrivals: dict[Queue, list[tuple[str, str]]] = {queue: [] for queue in QUEUES}

    def add(self, document: str, queue: Queue, arrived: str) -> None:
        """Put a document to work; one that is there already stays in, or moves to, the more urgent queue."""
        self._ticket += 1
        work = self._work.get(document)
        if work is None:
            self._work[document] = work = Work(document, arrived, queue, self._ticket)
            self._numbers[queue] += 1
        else:
            self._queues[work.queue].pop(document, None)
            work.ticket, work.attempts = self._ticket, 0
            work.arrived = min(work.arrived, arrived)
            queue = min(queue, work.queue, key=QUEUES.index)
        self._put(work, queue)

    def take(self, queue: Queue, limit: int) -> list[Taken]:
        """Hand out documents: the newest first from `full`, the oldest first from the others."""
        waiting = self._queues[queue]
        taken: list[Taken] = []
        while waiting and len(taken) < limit:
            document, _ = waiting.popitem(last=queue == "full")
            work = self._work[document]
            taken.append(Taken(document, work.ticket, work.attempts))
        return taken

    def done(self, item: Taken, *, then: Queue | None = None) -> None:
        """Take work back as finished, or as due in another queue. Nothing happens when it changed meanwhile."""
        work = self._work.get(item.document)
        if work is None or work.ticket != item.ticket:
            return
        self._queues[work.queue].pop(item.document, None)  # it may have been put back in between
        if then is None:
            del self._work[item.document]
            self._numbers[work.queue] -= 1
        else:
            self._put(work, then)

    def again(self, item: Taken) -> None:
        """Take work back as not done."""
        work = self._work.get(item.document)
        if work is not None and work.ticket == item.ticket:
            work.attempts += 1
            self._put(work, work.queue)

    def _put(self, work: Work, queue: Queue) -> None:
        self._numbers[work.queue] -= 1
        self._numbers[queue] += 1
        work.queue = queue
        self._queues[queue][work.document] = None
        arrivals = self._arrivals[queue]
        heapq.heappush(arrivals, (work.arrived, work.document))
        if len(arrivals) > 4 * len(self._work) + _SLACK:  # one stuck document must not keep all that came after it
            arrivals[:] = sorted({(w.arrived, w.document) for w in self._work.values() if w.queue == queue})

    def hurry(self, documents: Iterable[str]) -> None:
        """Put documents that wait for their full stage before all live changes: somebody asks for them now."""
        for document in documents:
            if self._queues["full"].pop(document, _NONE) is None:
                self._put(self._work[document], "live")
                self._queues["live"].move_to_end(document, last=False)

    def arrival(self, item: Taken) -> str:
        """Return when the change that this work brings arrived; empty for links and for work that changed meanwhile."""
        work = self._work.get(item.document)
        return work.arrived if work is not None and work.ticket == item.ticket and work.queue != "relink" else ""

    def waiting(self, *queues: Queue) -> int:
        """Return how many documents wait in these queues."""
        return sum(len(self._queues[queue]) for queue in queues)

    def unfinished(self, *queues: Queue) -> int:
        """Return how many documents wait or are being worked on, by the queue they are in now."""
        return sum(self._numbers[queue] for queue in queues)

    def oldest(self, *queues: Queue) -> str:
        """Return the earliest arrival among unfinished documents of these queues, or an empty text."""
        return min(filter(None, map(self._earliest, queues)), default="")

    def _earliest(self, queue: Queue) -> str:
        arrivals = self._arrivals[queue]
        while arrivals:
            arrived, document = arrivals[0]
            work = self._work.get(document)
            if work is not None and work.queue == queue and work.arrived == arrived:
                return arrived
            heapq.heappop(arrivals)
        return ""

    def __len__(self) -> int:
        """Return how many documents are unfinished."""
        return len(self._work)
