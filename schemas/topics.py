"""Kafka topics and consumer groups: declared here, created by us before a worker starts, never by a mere mention."""

import hashlib
from collections.abc import Mapping
from typing import Literal

import msgspec

DAY_MS = 24 * 60 * 60 * 1000
MAX_EVENT = 4 << 20
"""Bytes of one event, unless the settings say otherwise."""

ARRIVED, RECONCILED, APPLIED = "shinsen-arrived", "shinsen-reconciled", "shinsen-applied"
"""Headers with a time (RFC 3339 UTC, milliseconds): when the source topic had the event, when its record was
written, when it could be found. They go with a message through all stages."""
BY_REFERENCE = "shinsen-reference"
"""Header of a record whose columns are too large for a message: its reader takes them from the state store."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it must be. Names carry the installation's prefix once `topics` was given one."""

    name: str
    partitions: int
    cleanup: Literal["delete", "compact"] = "delete"
    retention_ms: int = -1
    """-1 keeps messages for ever; not used by compacted topics."""
    max_message: int = 2 * MAX_EVENT + (1 << 20)
    """Bytes of one message, headers included."""


class Topics(msgspec.Struct, frozen=True, kw_only=True):
    """All topics of one installation, but those of its generations."""

    events: Topic
    """Change events in any of the three envelopes, as sources publish them. Keyed by document, so that one
    document's events stay in order; order across keys means nothing."""
    events_bulk: Topic
    """The same for imports: they wait behind changes."""
    records: Topic
    """Whole records after the compare-and-set, keyed by document: `schemas.record.Record` as JSON. Compacted."""
    records_bulk: Topic
    """Records that came as imports or snapshots. A document may be in both; the larger position counts."""
    outcomes: Topic
    """How each event ended, keyed by document: `schemas.outcome.Outcome` as JSON. May repeat under one event id."""
    dead_letters: Topic
    """Events that cannot be applied, as they came; headers `shinsen-*` say why and from where."""

    def all(self) -> tuple[Topic, ...]:
        """Return every topic."""
        return (self.events, self.events_bulk, self.records, self.records_bulk, self.outcomes, self.dead_letters)


class GenerationTopics(msgspec.Struct, frozen=True, kw_only=True):
    """The topics of one generation; they go with it."""

    analyzed: Topic
    """What is ready to be embedded and applied, keyed by document: `schemas.messages.Analyzed` as MessagePack."""
    analyzed_bulk: Topic
    """The same for imports, and for documents that must be linked anew."""

    def all(self) -> tuple[Topic, ...]:
        """Return both."""
        return (self.analyzed, self.analyzed_bulk)


def topics(prefix: str = "shinsen.", partitions: int = 4, max_event: int = MAX_EVENT) -> Topics:
    """Return the topics of an installation whose events have at most `max_event` bytes."""
    # An event grows by the columns that its source did not send, and by the headers.
    limit = 2 * max_event + (1 << 20)

    def topic(name: str, **more: object) -> Topic:
        given = {"name": prefix + name, "partitions": partitions, "max_message": limit, **more}
        return msgspec.convert(given, Topic)

    return Topics(
        events=topic("events", retention_ms=7 * DAY_MS),
        events_bulk=topic("events-bulk", retention_ms=7 * DAY_MS),
        records=topic("records", cleanup="compact"),
        records_bulk=topic("records-bulk", cleanup="compact"),
        outcomes=topic("outcomes", retention_ms=7 * DAY_MS),
        dead_letters=topic("dead-letters", partitions=1),
    )


def generation_topics(prefix: str, generation: str, partitions: int) -> GenerationTopics:
    """Return the topics of a generation. Large messages go by reference there."""
    limit = 1 << 20
    live, bulk = f"{prefix}analyzed-{generation}", f"{prefix}analyzed-{generation}-bulk"
    return GenerationTopics(
        analyzed=Topic(name=live, partitions=partitions, retention_ms=DAY_MS, max_message=limit),
        analyzed_bulk=Topic(name=bulk, partitions=partitions, retention_ms=DAY_MS, max_message=limit),
    )


def reconcile_group(prefix: str) -> str:
    """Return the consumer group that reads source topics and writes records."""
    return f"{prefix}reconcile"


def analyze_group(prefix: str, generation: str) -> str:
    """Return the consumer group that reads records for a generation."""
    return f"{prefix}analyze-{generation}"


def apply_group(prefix: str, generation: str) -> str:
    """Return the consumer group that reads what was analyzed for a generation."""
    return f"{prefix}apply-{generation}"


def client_id(worker: str, versions: Mapping[str, str]) -> str:
    """Return how a worker calls itself in its groups: its name, and 8 hex digits that stand for what it builds with."""
    return f"{worker}@{hashlib.sha256(msgspec.json.encode(sorted(versions.items()))).hexdigest()[:8]}"


def worker_of(client: str) -> str:
    """Return the name of the worker with this client id."""
    return client.rpartition("@")[0] or client
