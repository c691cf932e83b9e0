"""What a shell does for replays: where documents come from, and what a generation has outside the state store."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from pipeline.ports.generations import Indexes, ReplayPlan


class Look(msgspec.Struct, frozen=True):
    """How far the work on a generation is, as the shell knows it; None where it has no such figure."""

    lag: int | None = None
    members: int | None = None


class Supply(Protocol):
    """Everything may be done again. Raises BackendUnavailable; nothing is lost then."""

    async def create(self, name: str, plan: ReplayPlan) -> dict[str, int]:
        """Make what must be there before anybody serves the generation; return its targets (see `Rebuild`).

        Raises NotPossible, before anything is made, when the source cannot supply what the plan asks for.
        """

    async def begin(self, name: str) -> None:
        """Let a generation that has its row be served from now on."""

    async def read(self, name: str, targets: dict[str, int]) -> bool:
        """Say whether all up to the targets was read and is in the indexes (or was refused)."""

    async def again(self, name: str, documents: Sequence[str]) -> None:
        """Have documents applied from their records, whatever the indexes have of them."""

    def since(self, start: str) -> AsyncIterator[str]:
        """Yield the documents that the source has from a start on, perhaps several times. Raises NotPossible."""

    async def look(self, name: str) -> Look:
        """Return how far the work is."""

    async def promoted(self, name: str, replaced: str) -> None:
        """Take notice of what is live now."""

    async def readers_gone(self, name: str, left_live: str) -> None:
        """Wait, some time at most, for requests over a generation that was live until a time (empty: never)."""

    async def remove(self, name: str) -> None:
        """Stop all work on a generation in state `pruning`, and remove what it has outside the state store."""

    def indexes(self, name: str) -> AbstractAsyncContextManager[Indexes]:
        """Pin a generation's indexes, live or not."""
