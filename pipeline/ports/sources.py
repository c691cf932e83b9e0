"""What is remembered of sources as a whole: their epochs, how far each was read, whether they went backwards."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

RECENT = 20
"""Events of which `SourceHead.recent` tells."""


class EpochStart(msgspec.Struct, frozen=True, kw_only=True):
    """Where the events of a new epoch begin: a database was restored, its positions count anew."""

    source: str
    epoch: int
    starts: dict[str, int]
    """Place (`<topic>-<partition>`, or `log`) → first offset of this epoch. A place that is not named holds nothing
    older."""
    at: str
    """When it was declared, RFC 3339 UTC."""


class SourceNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch said of one source in one place."""

    source: str
    place: str
    head: str
    """`schemas.position.reached` of the highest position."""
    version: str
    """That position as the source wrote it."""
    at: str
    """Its source time."""
    recent: str = ""
    """One character per event in order: `x` for one that a lower position was all that was wrong with, although it
    happened later than what stands; `.` for every other."""
    mark: tuple[str, str] | None = None
    """The last mark (a heartbeat): `reached` and source time. It counts as `x` when an earlier event of its place is
    higher."""


class SourceHead(msgspec.Struct, frozen=True, kw_only=True):
    """How far one source was read in one place."""

    source: str
    place: str
    head: str
    version: str
    at: str
    recent: str
    """Of the last events, at most `RECENT`, the newest last: see `SourceNote.recent`."""


class Sources(Protocol):
    """Each call is atomic and durable when it returns."""

    async def epochs(self) -> list[EpochStart]:
        """Return all epochs above 0, ordered by source and epoch."""

    async def new_epoch(self, source: str, starts: Mapping[str, int], at: str) -> int:
        """Begin the source's next epoch at these places and return its number; the first is 1.

        What `SourceHead.recent` says of the source is forgotten: it was about the epoch before.
        """

    async def note_sources(self, notes: Sequence[SourceNote], reconciled: Mapping[str, int]) -> None:
        """Raise heads (a lower one changes nothing), add what events said, and raise offsets per place.

        `reconciled`: place → first offset that is not reconciled yet; a lower one changes nothing. Events
        below it have their effect in the records, or are refused, or say nothing.
        """

    async def source_heads(self, source: str = "") -> list[SourceHead]:
        """Return the heads of a source, or of all, ordered by source and place."""

    async def reconciled(self, places: Sequence[str]) -> dict[str, int]:
        """Return what `note_sources` was told of these places; those never named are absent."""
