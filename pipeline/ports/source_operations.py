"""Sources: what operators see of them and do to them."""

from typing import Protocol

import msgspec


class SourceOverview(msgspec.Struct, frozen=True, kw_only=True):
    """One source as far as it is known."""

    source: str
    epoch: int
    since: str = ""
    """When this epoch was declared; empty for the first one."""
    position: str = ""
    """The highest position that was read, as the source wrote it."""
    at: str = ""
    """Its source time."""
    collections: list[str]
    recent: int = 0
    """Of the last `recent` events (at most 20 of each partition; of suspicious ones only, if there are any) ..."""
    superseded: int = 0
    """... so many lost by their position alone, although they happened later than what stands."""


class NewEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """A new epoch: what lies before these offsets belongs to the old one."""

    source: str
    epoch: int
    starts: dict[str, int]


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked to go: records that no event of the newest epoch has brought back."""

    source: str
    epoch: int
    collections: list[str]
    events: list[str]
    """Their end can be waited for."""


class SourceOperations(Protocol):
    """What `/v1/sources` offers."""

    async def overview(self) -> list[SourceOverview]:
        """Return every source of which events or epochs are known, by name."""

    async def warnings(self) -> list[str]:
        """Return a sentence for each source that seems to have gone backwards."""

    async def new_epoch(self, source: str) -> NewEpoch:
        """Let all events of a source that come from now on be newer than every one before.

        Raises NotFound for a source that never sent anything: nothing is older then, and the name is wrong.
        """

    async def forget_older(self, source: str) -> Forgotten:
        """Delete what no event of the newest epoch has brought. Raises NotPossible in the first epoch."""
