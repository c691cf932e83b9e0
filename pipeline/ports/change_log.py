"""The change log: append-only, replayable."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from schemas.change_event import RawEvent


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event as the log keeps it. `offset` starts at 1 and grows by arrival."""

    offset: int
    raw: RawEvent
    received_at: str


class ChangeLog(Protocol):
    """Append-only, replayable. On the stack this is Kafka and the port is not used by the agents."""

    async def append(self, events: Sequence[RawEvent], received_at: str) -> list[int]:
        """Append all or none, durably, in order; return their offsets. Appending nothing returns []."""

    async def read(self, after: int, limit: int) -> list[LoggedEvent]:
        """Return at most `limit` events with offset > `after`, in offset order; [] at the end."""

    async def end(self) -> int:
        """Return the offset of the last event, 0 when empty."""
