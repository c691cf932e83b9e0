"""Source positions: what orders the versions of one key, whatever the order of arrival."""

import msgspec

SNAPSHOT, UPSERT, DELETE = 2, 5, 8
"""Ranks among events of equal ordinal: a snapshot read loses to a change, a delete wins."""

MAX_ORDINAL = 10**20 - 1


class Position(msgspec.Struct, frozen=True, order=True):
    """A total order of the versions of one key.

    Fields compare from left to right: the epoch of the source (a restored database starts a new
    one), the source's own ordinal (a sequence number, an LSN as integer, or microseconds of
    `occurred_at` in UTC since the year 1 for a collection without positions), the rank of the operation, and the
    first 16 hex digits of the content's hash, so that two events that claim the same position
    still end the same way everywhere.
    """

    epoch: int
    ordinal: int
    rank: int
    tie: str

    def sort_key(self) -> str:
        """Return a text whose plain byte order is the order of positions (46 characters)."""
        return f"{self.epoch:06d}.{self.ordinal:020d}.{self.rank}.{self.tie}"


def parse_sort_key(text: str) -> Position:
    """Read `Position.sort_key` back. Raises ValueError on anything else."""
    epoch, ordinal, rank, tie = text.split(".")
    return Position(int(epoch), int(ordinal), int(rank), tie)
