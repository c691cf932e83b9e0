"""Source positions: what orders the versions of one key, whatever the order of arrival."""

import msgspec

SNAPSHOT, UPSERT, DELETE = 2, 5, 8
"""Ranks among events of equal ordinal: a snapshot read loses to a change, a delete wins."""

MAX_ORDINAL = 10**20 - 1
_PARTS = 4
"""Of a sort key, without its filling."""


class Position(msgspec.Struct, frozen=True):
    """A total order of the versions of one key: that of `sort_key`.

    From left to right: the epoch of the source (a restored database starts a new one), the source's own
    ordinal (a sequence number, an LSN as integer, or microseconds of `occurred_at` in UTC since the year
    1 for a collection without positions), the place `within` it where several changes share one ordinal
    (absent: after all that have one), the rank of the operation, and the first 16 hex digits of the
    content's hash, so that two events that claim the same position still end the same way everywhere.
    """

    epoch: int
    ordinal: int
    rank: int
    tie: str
    within: int | None = None
    filling: int = 0
    """How often a late, older version has filled columns of this one since: see `next_filling`."""

    def sort_key(self) -> str:
        """Return a text whose plain byte order is the order of positions (46 characters, 21 more with `within`)."""
        key = f"{reached(self.epoch, self.ordinal)}{self._within()}.{self.rank}.{self.tie}"
        return f"{key}.{self.filling:06d}" if self.filling else key

    def _within(self) -> str:
        # "-" is smaller than ".": a change with a place comes before one without.
        return "" if self.within is None else f"-{self.within:020d}"


def reached(epoch: int, ordinal: int) -> str:
    """Return the beginning of every sort key of this epoch and ordinal (27 characters); byte order is theirs."""
    return f"{epoch:06d}.{ordinal:020d}"


def parse_sort_key(text: str) -> Position:
    """Read `Position.sort_key` back. Raises ValueError on anything else."""
    epoch, ordinal, rank, tie, *filling = text.split(".")
    ordinal, _, within = ordinal.partition("-")
    number = int(filling[0]) if filling else 0
    return Position(int(epoch), int(ordinal), int(rank), tie, int(within) if within else None, number)


def as_sent(sort_key: str) -> str:
    """Return the position as its source gave it, without its filling; what is compared between two runs."""
    return ".".join(sort_key.split(".")[:_PARTS])


def next_filling(sort_key: str) -> str:
    """Return the position of the same version once more columns of it are known: after it, before all newer ones."""
    position = parse_sort_key(sort_key)
    return msgspec.structs.replace(position, filling=position.filling + 1).sort_key()
