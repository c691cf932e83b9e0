"""The newest known version of a source record, kept whole and raw so that everything can be rebuilt from it."""

from typing import Any, Literal

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the `records` log: the winner by position of all events of one key."""

    document: str
    op: Literal["upsert", "delete"]
    position: str
    """`Position.sort_key`."""
    version: str
    occurred_at: str
    columns: dict[str, Any] = msgspec.field(default_factory=dict)
    """Raw columns (mapping, dictionary and models can all change and be replayed over them)."""
    unavailable: tuple[str, ...] = ()
    """Of a record that is offered: columns that its event did not bring. `State.advance` takes them from the version
    before; what stands has none."""
    origins: tuple[str, ...] = ()
    """Ids of the events folded into this row and not yet announced; the last one is the winner's."""
    lane: Literal["live", "bulk"] = "live"
