"""The Kafka topics: declared here, created by us before any worker starts, never by a mere mention."""

from typing import Literal

import msgspec

DAY_MS = 24 * 60 * 60 * 1000


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic as it must be. Names carry the installation's prefix once `topics` was given one."""

    name: str
    partitions: int
    cleanup: Literal["delete", "compact"] = "delete"
    retention_ms: int = -1
    """-1 keeps messages for ever; not used by compacted topics."""


class Topics(msgspec.Struct, frozen=True, kw_only=True):
    """All topics of one installation."""

    events: Topic
    """Change events in any of the three envelopes, as sources publish them. Keyed by document, so that one
    document's events stay in order; order across keys means nothing."""
    outcomes: Topic
    """How each event ended, keyed by document: `schemas.outcome.Outcome` as JSON. May repeat under one event id."""
    dead_letters: Topic
    """Events that cannot be applied, as they came; headers `shinsen-*` say why and from where."""

    def all(self) -> tuple[Topic, ...]:
        """Return every topic."""
        return (self.events, self.outcomes, self.dead_letters)


def topics(prefix: str = "shinsen.", partitions: int = 4) -> Topics:
    """Return the topics of an installation."""
    return Topics(
        events=Topic(name=prefix + "events", partitions=partitions, retention_ms=7 * DAY_MS),
        outcomes=Topic(name=prefix + "outcomes", partitions=partitions, retention_ms=7 * DAY_MS),
        dead_letters=Topic(name=prefix + "dead-letters", partitions=1),
    )
