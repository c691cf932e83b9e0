"""The runtime: what the HTTP API asks of a running pipeline, embedded or on the stack."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from pipeline.mapping import Mappings
from pipeline.ports.further_list import FurtherList
from pipeline.ports.generations import Indexes
from pipeline.ports.models import Analyzer, Embedder
from pipeline.ports.replays import Replays
from pipeline.ports.reranker import Reranker
from pipeline.ports.signals import ChangeHistogram, Health, Signals
from pipeline.ports.source_operations import SourceOperations
from pipeline.ports.state import State
from schemas.change_event import RawEvent
from schemas.outcome import OutcomeName, TokenPart
from schemas.ranking_model import RankingModel

__all__ = ["Indexes", "Runtime", "Submission", "Watermarks", "progress_of"]


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event at the door."""

    index: int
    status: str
    """`accepted` or `rejected`."""
    event: str = ""
    """Event id when accepted."""
    document: str = ""
    parts: tuple[TokenPart, ...] = ()
    """What its freshness token covers: one, two for a changed primary key, none without a key (truncate)."""
    code: str = ""
    reason: str = ""
    pointer: str = ""
    """JSON pointer into the event, when rejected."""
    too_large: bool = False
    try_again: bool = False
    """True when the event was rejected only because the log did not take it in time."""
    dead_letter: str = ""
    """Id under which a rejected event was kept."""


class Watermarks(msgspec.Struct, frozen=True, kw_only=True):
    """How far each store is: the arrival time (RFC 3339 UTC) up to which every event is in it."""

    records: str
    chunks: str
    """Text and vectors of everything that arrived by then."""
    text: str
    """Text at least (staged load)."""
    graph: str
    pending: int
    """Documents not yet full."""
    pending_text: int
    """Documents not searchable at all yet."""
    relinks: int


def progress_of(marks: Watermarks) -> dict[str, dict[str, Any]]:
    """Return `pending` and `watermarks` as `Runtime.status` shows them."""
    return {
        "pending": {"documents": marks.pending, "text": marks.pending_text, "relinks": marks.relinks},
        "watermarks": {"records": marks.records, "text": marks.text, "chunks": marks.chunks, "graph": marks.graph},
    }


class Runtime(Protocol):
    """A running pipeline."""

    state: State
    analyzer: Analyzer
    embedder: Embedder
    mappings: Mappings
    ranking: RankingModel
    """Weights of the search."""
    reranker: Reranker | None
    """The second stage of a search; None: there is none."""
    rerank_budget_s: float
    further: tuple[FurtherList, ...]
    """Lists besides the two of every search; empty unless someone gives them a weight."""
    further_budget_s: float

    @property
    def replays(self) -> Replays:
        """What operators ask of generations."""

    @property
    def sources(self) -> SourceOperations:
        """What operators ask of sources."""

    def live(self) -> AbstractAsyncContextManager[Indexes]:
        """Pin the live generation for one request."""

    async def submit(self, events: Sequence[RawEvent]) -> list[Submission]:
        """Decode, refuse or log events, in order. Accepted ones are durable on return; refused ones are
        kept as dead letters. Raises Backpressure when queues are full, and BackendUnavailable when the log
        does not answer (nothing counts as taken then; sent again, an event that was has no second effect)."""

    async def wait_settled(self, parts: Sequence[TokenPart], timeout_s: float) -> None:
        """Return once each document is committed, collected and full at its position or a newer one.
        Raises EventDead when such an event ended as a dead letter, NotFresh after `timeout_s`."""

    async def wait_source(self, source: str, position: str, timeout_s: float) -> None:
        """Return once everything that this source committed up to its own position (an LSN, ...) is in every store.
        Raises NotFresh after `timeout_s`, InvalidQuery where a position cannot be told or waited for."""

    async def wait_outcomes(self, events: Sequence[str], timeout_s: float) -> dict[str, OutcomeName]:
        """Return the outcomes known when all are there or the time is over."""

    async def watermarks(self) -> Watermarks:
        """Return how far each store is."""

    async def signals(self) -> Signals:
        """Return change-to-searchable times, lag and workers by stage, and warnings; perhaps half a second old."""

    def histograms(self) -> list[ChangeHistogram]:
        """Return the change-to-searchable times counted since the start."""

    async def health(self) -> Health:
        """Return which stores answer; bounded in time and never raising, perhaps a second old."""

    def hurry(self, documents: Sequence[str]) -> None:
        """Move staged documents to the front: somebody just asked for them."""

    async def status(self) -> dict[str, Any]:
        """Return counts, offsets, generations, queues, versions and workers, for people and probes."""

    async def digest(self) -> dict[str, str]:
        """Read every store back; one hash per part and `all`. Raises NotFresh when not everything is full."""

    async def replay(self) -> dict[str, Any]:
        """Build a new generation from the records, switch to it, drop the old one; return what was done."""

    async def retry(self, letters: Sequence[str]) -> dict[str, str]:
        """Try dead letters again; return for each id what was done (`queued` or why not)."""
