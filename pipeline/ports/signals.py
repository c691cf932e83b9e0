"""What a running pipeline tells of itself: how long changes take, what waits where, which store answers."""

import msgspec

EVERY_COLLECTION = "*"


class ChangeTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long changes took from their arrival until they were in a store, over the last minutes. Milliseconds."""

    collection: str
    """`source/collection`, or `*` for all of them together."""
    store: str
    """`records`, `chunks` or `graph`; `text` for what a staged load made searchable before the rest."""
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class ChangeHistogram(msgspec.Struct, frozen=True, kw_only=True):
    """The same since the process started, as Prometheus wants it: cumulative counts by upper bound in seconds."""

    collection: str
    store: str
    buckets: list[tuple[str, int]]
    """The last bound is `+Inf`."""
    sum_s: float


class PartitionLag(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage has not acknowledged of one partition."""

    topic: str
    partition: int
    lag: int
    oldest: str
    """Arrival of the oldest such message, RFC 3339 UTC; empty when there is none."""


class StageLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far one stage is behind, and who serves it."""

    stage: str
    group: str
    """Its consumer group; empty embedded."""
    members: int
    """Workers in the group; 0 says that nobody works on it."""
    lag: int
    oldest: str
    partitions: list[PartitionLag] = []


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that freshness pages, metrics and alarms are made of."""

    times: list[ChangeTime]
    stages: list[StageLag]
    """In the order of the journey."""
    dead_letters: int
    """Open ones."""
    oldest_unapplied: str
    """Arrival of the oldest event that is not in every store yet; empty when there is none."""
    warnings: list[str]
    """What a person should look at, with what to do."""
    outdated: list[str] = []
    """Parts of the live indexes that were built with other versions than are configured."""
    repaired: dict[str, int] = {}
    """By index: documents that it did not hold as their manifests say, so that they were published again; of the live
    generation, ever. Empty where no standing check looks for them."""


class StoreState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a store answers."""

    name: str
    up: bool
    since: str
    """Since when it has been so, as far as this process saw it."""
    detail: str = ""
    """What it said when it did not answer; for operators."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this process can serve."""

    stores: list[StoreState]
    paused: list[str]
    """Why indexing stands still; questions go on over what is there."""

    @property
    def down(self) -> list[StoreState]:
        """The stores that do not answer."""
        return [store for store in self.stores if not store.up]
