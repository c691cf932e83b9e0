"""Dead letters: what cannot be applied, kept whole with the reason."""

import hashlib
import re
from typing import Literal, cast

import msgspec

from pipeline.errors import InvalidEvent
from schemas.change_event import RawEvent
from schemas.outcome import DeadLetter, Outcome
from schemas.record import Record

RETRY_HEADER = "shinsen-event"
"""Carries the id of the event that a retried payload first had, so that its outcome is replaced."""
LETTER_HEADER = "shinsen-letter"
"""Carries the id of the dead letter that is tried again."""
_LETTER = re.compile(r"[0-9a-f]{24}")


class BuriedRecord(msgspec.Struct, frozen=True):
    """A record's dead letter, and the older events folded into the record, which it supersedes."""

    letter: DeadLetter
    superseded: list[Outcome]


def letter_id(event: str, code: str) -> str:
    """Return the id of an event's dead letter: 24 hex digits."""
    return hashlib.sha256(f"{event}\x1f{code}".encode()).hexdigest()[:24]


def retried_letter(raw: RawEvent) -> str:
    """Return the id of the dead letter that an event says it tries again; empty when it names none.

    Anybody who may publish can write these headers: believe them only if the letter is known, and is of that event.
    """
    named = raw.headers.get(LETTER_HEADER, "")
    return named if RETRY_HEADER in raw.headers and _LETTER.fullmatch(named) else ""


def refused_event_id(raw: RawEvent) -> str:
    """Return an id for an event that never reached the log: the same bytes, the same id.

    CloudEvents in binary mode say who they are in their headers.
    """
    named = sorted((name, value) for name, value in raw.headers.items() if name.startswith(("ce_", "ce-")))
    content = hashlib.sha256(msgspec.msgpack.encode([raw.value, raw.key, named])).hexdigest()[:24]
    return raw.headers.get(RETRY_HEADER) or f"refused:{content}"


def raw_letter(event: str, raw: RawEvent, error: InvalidEvent, at: str) -> DeadLetter:
    """Return the dead letter of an event that could not be decoded or reconciled."""
    return DeadLetter(
        id=letter_id(event, error.code),
        event=event,
        code=error.code,
        reason=error.reason,
        document=error.document,
        position=error.position,
        stage="reconcile" if error.code in ("mixed_positions", "store_refused") else "decode",
        payload=raw.value or b"",
        headers={k: v for k, v in raw.headers.items() if k not in (RETRY_HEADER, LETTER_HEADER)},
        at=at,
    )


def record_letter(record: Record, error: InvalidEvent, stage: str, at: str, *, generation: str = "") -> BuriedRecord:
    """Return the dead letter of a record that could not be mapped or applied, in one generation if it is named."""
    event = record.origins[-1] if record.origins else ""
    letter = DeadLetter(
        # By version, not by event: a rebuild that fails again over the same record is the same letter.
        id=letter_id(
            f"{record.document}@{record.position}", f"{error.code}@{generation}" if generation else error.code
        ),
        event=event,
        code=error.code,
        reason=error.reason,
        document=record.document,
        position=record.position,
        stage=cast('Literal["map", "apply"]', stage),
        payload=msgspec.json.encode(record.columns),
        headers={"content-type": "application/json"},
        at=at,
        generation=generation,
    )
    older = [
        Outcome(event=origin, document=record.document, position=record.position, outcome="superseded")
        for origin in record.origins[:-1]
    ]
    return BuriedRecord(letter, older)
