"""Which epoch of its source an event belongs to, and whether a source went backwards without one.

Positions order versions only inside one history of a database. A restored database starts a new one: its
LSNs begin below those that were seen. `shinsen source new-epoch` says so once, and notes how far every
topic was filled at that moment: what lies before belongs to the old epoch, what comes after to the new
one, on every reading again. Where an event lies is in its id, so a dead letter that is retried stays in its epoch.
"""

import re
from collections.abc import Iterable, Sequence

from pipeline.ports.sources import EpochStart, SourceHead

_PLACE = re.compile(r"(?P<place>log|.+-\d+)[:-](?P<offset>\d+)(?:\.\d+)?")
ALARM_EVENTS, ALARM_SHARE = 10, 0.8
"""So many events at least of one place, and this share of them superseded by their position alone."""


def place_of(event_id: str) -> tuple[str, int] | None:
    """Return place and offset of an event id: `<topic>-<partition>-<offset>`, `log:<offset>`; None for other ids."""
    match = _PLACE.fullmatch(event_id)
    return (match["place"], int(match["offset"])) if match else None


class SourceEpochs:
    """The epochs of all sources at one moment."""

    def __init__(self, starts: Iterable[EpochStart]) -> None:
        self._starts = sorted(starts, key=lambda start: (start.source, start.epoch))

    def of(self, event_id: str) -> dict[str, int]:
        """Return source → epoch for an event that lies where its id says; sources without a new epoch are absent."""
        at = place_of(event_id)
        if at is None:
            return self.newest()
        place, offset = at
        return {start.source: start.epoch for start in self._starts if offset >= start.starts.get(place, 0)}

    def newest(self) -> dict[str, int]:
        """Return source → epoch for an event that comes now."""
        return {start.source: start.epoch for start in self._starts}


def suspicious(heads: Sequence[SourceHead]) -> list[SourceHead]:
    """Return the places of which nearly all of the last events are superseded though they happened later."""
    return [
        head
        for head in heads
        if len(head.recent) >= ALARM_EVENTS and head.recent.count("x") >= ALARM_SHARE * len(head.recent)
    ]


def went_backwards(heads: Sequence[SourceHead]) -> list[str]:
    """Return a warning for each source with suspicious places."""
    said: dict[str, list[str]] = {}
    for head in suspicious(heads):
        said.setdefault(head.source, []).append(head.recent)
    return [
        f"{sum(recent.count('x') for recent in rows)} of the last {sum(map(len, rows))} events of source {source} were "
        "superseded although they happened later than what stands: has the database been restored? If so, stop its "
        f"connector, run `shinsen source new-epoch {source}`, and let it take a new snapshot"
        for source, rows in said.items()
    ]
