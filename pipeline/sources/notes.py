"""What a batch says of its sources: how far they have come, and whether they seem to have gone backwards."""

from pipeline.ports.sources import SourceNote
from pipeline.ports.state import Advance
from pipeline.sources.epochs import place_of
from schemas.change_event import ChangeEvent
from schemas.position import parse_sort_key, reached


class SourceNotes:
    """Gathers notes in order of arrival, one per source and place."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], SourceNote] = {}

    def __bool__(self) -> bool:
        return bool(self._notes)

    def saw(self, event_id: str, event: ChangeEvent, result: Advance | None = None) -> None:
        """Take one event that was reconciled; an event without a position says nothing of its source."""
        place = place_of(event_id)
        if place is None or not event.positioned:
            return
        key = (event.source, place[0])
        position = parse_sort_key(event.position)
        own = SourceNote(
            source=event.source,
            place=place[0],
            head=reached(position.epoch, position.ordinal),
            version=event.version,
            at=event.occurred_at,
        )
        before = self._notes.get(key, own)
        top = own if own.head >= before.head else before
        said = "" if result is None else "x" if _seems_restored(event, result) else "."
        self._notes[key] = SourceNote(
            source=event.source,
            place=place[0],
            head=top.head,
            version=top.version,
            at=top.at,
            recent=before.recent + said,
            mark=(own.head, own.at) if event.op == "mark" else before.mark,
        )

    def all(self) -> list[SourceNote]:
        """Return what was gathered."""
        return list(self._notes.values())


def _seems_restored(event: ChangeEvent, result: Advance) -> bool:
    """Say whether a version lost by its position although it happened later than the one that stands.

    That is what a restored database looks like. A late or repeated event is older in time, too.
    """
    return result.result == "superseded" and event.occurred_at > result.record.occurred_at
