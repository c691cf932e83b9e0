"""Admission: decode one event, or say why it is refused. What every shell does at its door."""

from collections.abc import Mapping

import structlog

from pipeline.decoding.decode import decode
from pipeline.decoding.names import check_document
from pipeline.errors import InvalidEvent, TooLarge
from pipeline.mapping import Mappings
from schemas.change_event import ChangeEvent, RawEvent

log = structlog.get_logger(__name__)


def admit(
    raw: RawEvent, mappings: Mappings, max_event: int, epochs: Mapping[str, int] | None = None
) -> list[ChangeEvent] | InvalidEvent:
    """Return the change events of a message of at most `max_event` bytes, or the reason to refuse it. Never raises.

    `epochs`: source → epoch of this message (see `pipeline.sources.epochs`), 0 when it is not named.
    """
    size = len(raw.value or b"")
    if size > max_event:
        reason = f"the event has {size} bytes, the limit is {max_event}; split the document, or raise SHINSEN_MAX_EVENT"
        return TooLarge("too_large", reason)
    try:
        events = decode(raw, mappings, epochs=epochs)
        for event in events:
            check_document(event.document)
        return events
    except InvalidEvent as error:
        return error
    except Exception as error:  # one event must not stop the stream, whatever is wrong with it or with us
        log.exception("decoding_failed")
        return InvalidEvent("internal_error", f"reading it failed: {type(error).__name__}: {error}; see the log")
