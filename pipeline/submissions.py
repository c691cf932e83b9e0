"""What became of events at the door, in the words of the Runtime port."""

from collections.abc import Sequence

from pipeline.errors import InvalidEvent, TooLarge
from pipeline.ports.runtime import Submission
from schemas.change_event import ChangeEvent
from schemas.outcome import DeadLetter, TokenPart


def accepted(index: int, event: str, decoded: Sequence[ChangeEvent]) -> Submission:
    """Return an event that is in the log under the id `event`."""
    return Submission(
        index=index,
        status="accepted",
        event=event,
        document=decoded[-1].document if decoded else "",
        parts=tuple(TokenPart(e.document, e.position) for e in decoded if e.key),
    )


def refused(index: int, error: InvalidEvent, letter: DeadLetter) -> Submission:
    """Return an event that can never be applied as it is, kept as a dead letter."""
    return Submission(
        index=index,
        status="rejected",
        document=error.document,
        code=error.code,
        reason=error.reason,
        pointer=error.pointer,
        too_large=isinstance(error, TooLarge),
        dead_letter=letter.id,
    )


def not_taken(index: int, decoded: Sequence[ChangeEvent], reason: str) -> Submission:
    """Return an event that the log did not take in time: nothing is wrong with it, it is to be sent again."""
    return Submission(
        index=index,
        status="rejected",
        document=decoded[-1].document if decoded else "",
        code="not_taken",
        reason=reason,
        try_again=True,
    )
