"""How events end: exactly one of four ways, each countable."""

from typing import Literal

import msgspec

OutcomeName = Literal["applied", "duplicate", "superseded", "dead_letter"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one event. Announcements may repeat under one `event`; effects do not."""

    event: str
    """Id of the event: `log:<offset>` embedded, `<topic>-<partition>-<offset>` on Kafka."""
    document: str
    position: str
    outcome: OutcomeName


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An event that cannot be applied as it is: why, where from, and the whole payload for a retry."""

    id: str
    """Deterministic in (event, code), so that a replay does not double it."""
    event: str
    """Empty when a rebuild refused a record whose events have all ended."""
    code: str
    """A stable word for the reason: `not_json`, `unknown_op`, `too_many_chunks`, ..."""
    reason: str
    """What happened, where, and what to do next, for a person."""
    document: str = ""
    """Empty when not even the key could be read."""
    position: str = ""
    stage: Literal["decode", "reconcile", "map", "apply"] = "decode"
    payload: bytes = b""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    at: str = ""
    """When it was put aside, RFC 3339 UTC."""
    attempts: int = 1
    resolved: bool = False
    generation: str = ""
    """The one whose worker could not map or apply it; its letters count while it is live. Empty: of no generation."""


class TokenPart(msgspec.Struct, frozen=True, array_like=True):
    """One (document, position) that a freshness token covers."""

    document: str
    position: str
