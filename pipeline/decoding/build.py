"""Building change events from what an envelope says."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from pipeline.decoding.names import check_key, join_key
from pipeline.decoding.positions import event_time, order_of, record_time, sort_key
from pipeline.errors import InvalidEvent
from pipeline.mapping.values import is_empty, shown
from schemas.change_event import ChangeEvent, Envelope, Lane, Op, document_key
from schemas.mapping import ColumnRule, Mapping


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What an envelope says of one change, before keys and positions are checked."""

    mapping: Mapping
    """Also names source and collection."""
    envelope: Envelope
    lane: Lane
    epoch: int
    position: Any = None
    position_pointer: str = "/position"
    occurred_at: Any = None
    time_pointer: str = "/occurred_at"
    snapshot: bool = False
    """A snapshot read loses to a change at the same position."""

    def event(
        self,
        op: Op,
        key: str,
        columns: dict[str, Any],
        unavailable: tuple[str, ...] = (),
        *,
        ordered_by: dict[str, Any] | None = None,
    ) -> ChangeEvent:
        """Build the event; `ordered_by` holds the columns of a delete's last state. Raises InvalidEvent."""
        known = columns if ordered_by is None else ordered_by
        with located(self.mapping, key):
            time = event_time(self.occurred_at, self.time_pointer)
            order = order_of(self.mapping, self.position, time, known, self.position_pointer)
        return ChangeEvent(
            source=self.mapping.source,
            collection=self.mapping.collection,
            key=key,
            op=op,
            position=sort_key(order, op, columns, unavailable, snapshot=self.snapshot, epoch=self.epoch),
            version=order.version,
            occurred_at=time or record_time(self.mapping, known),
            columns=columns,
            unavailable=unavailable,
            positioned=order.positioned,
            envelope=self.envelope,
            lane="bulk" if self.snapshot else self.lane,
        )


@contextmanager
def located(mapping: Mapping, key: str) -> Iterator[None]:
    """Name the document in an InvalidEvent that passes by."""
    try:
        yield
    except InvalidEvent as error:
        error.document = error.document or document_key(mapping.source, mapping.collection, key)
        raise


def mapped_key(mapping: Mapping, columns: dict[str, Any], pointer: str) -> str | None:
    """Return the key by the mapping's key columns; None when it has none, or one of them is empty or absent."""
    if not mapping.key or any(is_empty(columns.get(name)) for name in mapping.key):
        return None
    return check_key(join_key([key_part(columns[n], mapping.columns.get(n), pointer) for n in mapping.key]), pointer)


def key_part(raw: Any, rule: ColumnRule | None, pointer: str) -> str:
    """Return one part of a key as text: decoded by the column's rule, so that every envelope gives the same."""
    if isinstance(raw, float | list) and not (isinstance(raw, float) and raw.is_integer()):
        raise InvalidEvent("wrong_type", f"{raw!r} cannot be part of a key; use a text or an integer", pointer=pointer)
    try:
        return shown(raw, rule or ColumnRule("keyword"))
    except ValueError as error:
        raise InvalidEvent("wrong_type", f"key: {error}", pointer=pointer) from error
