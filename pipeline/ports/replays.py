"""Replay and rebuild: what operators ask of generations."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from pipeline.ports.generations import Indexes, ReplayPlan


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay began to do."""

    generation: str
    resumed: bool = False
    """An unfinished rebuild with the same plan and versions was there, and goes on."""
    documents: int = 0
    """Records to be done; into live, those that were marked."""


class GenerationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One generation as operators see it."""

    name: str
    state: str
    created_at: str
    versions: dict[str, str]
    live_since: str = ""
    """When it last became live; empty when it never did."""
    phase: str = ""
    """Of its rebuild: `reading`, `filling`, `partial`, `complete`; empty for one that was never rebuilt."""
    records: int = 0
    done: int = 0
    """Records whose newest version is in every index of this generation."""
    relinks: int = 0
    """Documents marked to be done again."""
    filled: int = 0
    """Documents that came by reference from the records, since the source did not have them."""
    lag: int | None = None
    """Messages that its groups have not read; None embedded."""
    members: int | None = None
    """Workers that serve it; None embedded."""
    rate: float = 0.0
    """Documents per second, over the last minute."""
    left_s: float | None = None
    """Seconds left at that rate; None when it cannot be told."""
    stuck: str = ""
    """Why nothing moves, and what to do; empty while it does."""
    stopped: bool = False
    """True when nobody goes on with its rebuild until it is asked for again."""


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """What became live."""

    generation: str
    replaced: str
    """The one before; empty when it was live already."""
    warnings: tuple[str, ...] = ()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A class of differences with a few of those that differ."""

    count: int = 0
    examples: tuple[str, ...] = ()


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """How two generations differ. Empty parts: they are equal there."""

    first: str
    second: str
    documents: int
    """Compared, deleted ones included."""
    records: dict[str, Difference] = {}
    """What must be equal: `only in NAME`, `version`, `operation`, `access`, `fields`, `title`, `type`."""
    decisions: dict[str, Difference] = {}
    """What must be equal, too: `withdrawn` (refused by one only), and names that records declare."""
    chunks: dict[str, Difference] = {}
    """`only in NAME` (a document cut or read otherwise), `offsets`, `terms`, `vector model`, `vector` (other numbers by
    the same model), `vector missing in NAME`, `sentence vectors` (another number of them), `access`, `fields`."""
    facts: dict[str, Difference] = {}
    """`only in NAME: PREDICATE`, `evidence: PREDICATE` (same statement, other span, method or confidence)."""

    @property
    def exact(self) -> bool:
        """Records and decisions are equal."""
        return not self.records and not self.decisions


class Replays(Protocol):
    """Raises NotPossible (with what to do) where something is refused, NotFound for unknown generations."""

    async def start(self, plan: ReplayPlan) -> Started:
        """Begin a replay, or go on with the one that was begun; returns before it is done."""

    async def finished(self, name: str, timeout_s: float | None = None) -> GenerationStatus:
        """Return when a rebuild is complete, partial, or nobody goes on with it. NotFresh after the time."""

    async def statuses(self) -> list[GenerationStatus]:
        """Return all generations, oldest first."""

    async def promote(self, name: str, *, force: bool = False, wait_s: float = 30.0) -> Promoted:
        """Make a generation live. Refused while it is incomplete or older than the live one, unless forced;
        for what is only on its way it waits up to `wait_s`."""

    async def rollback(self, *, force: bool = False, wait_s: float = 30.0) -> Promoted:
        """Make the generation live that was so before."""

    async def prune(self, names: Sequence[str] = ()) -> list[str]:
        """Remove generations with all they have; without names all retired ones. Returns what is gone."""

    async def compare(self, first: str, second: str, collections: Sequence[str] = ()) -> Comparison:
        """Read two generations back and classify their differences, in bounded memory."""

    def indexes(self, name: str) -> AbstractAsyncContextManager[Indexes]:
        """Pin a generation's indexes, live or not."""
