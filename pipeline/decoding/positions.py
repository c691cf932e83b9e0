"""Positions of events: by the mapping's rule from the envelope or a column, or by the event's time."""

import hashlib
import re
from datetime import datetime
from typing import Any

import msgspec

from pipeline.errors import InvalidEvent
from pipeline.mapping.values import read_value
from pipeline.text.calendar import UNKNOWN_TIME, microseconds, parse_time, utc_text
from schemas.change_event import Op
from schemas.mapping import ColumnRule, Mapping
from schemas.position import DELETE, MAX_ORDINAL, SNAPSHOT, UPSERT, Position

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")
_DIGITS = re.compile(r"[0-9]{1,20}")


class Order(msgspec.Struct, frozen=True):
    """What orders one event: an ordinal, how the source wrote it, and whether it is a position or a time."""

    ordinal: int
    version: str
    positioned: bool
    within: int | None = None
    """Place among changes of one ordinal."""


def order_of(mapping: Mapping, position: Any, occurred_at: str | None, columns: dict[str, Any], pointer: str) -> Order:
    """Decide what orders an event, by the mapping's position rule.

    `position` is the envelope's (None: it has none; an Order: already read), `occurred_at` RFC 3339 UTC.
    Raises InvalidEvent: `bad_position`, `missing_position` (neither position nor time, or the rule
    asks for a position).
    """
    spec = mapping.position
    rule = spec.rule if spec else "auto"
    if spec and spec.column:
        position, pointer = columns.get(spec.column), f"/{spec.column}"
    if rule == "none" or (rule == "auto" and position is None):
        return _by_time(occurred_at)
    if position is None:
        where = f"column {spec.column!r}" if spec and spec.column else "position"
        raise InvalidEvent(
            "missing_position",
            f"the event has no {where}, but {mapping.source}/{mapping.collection} is ordered by rule {rule!r}",
            pointer=pointer,
        )
    if isinstance(position, Order):
        return position
    return Order(ordinal_of(position, rule, pointer), str(position), True)


def ordinal_of(position: Any, rule: str, pointer: str = "/position") -> int:
    """Read a position as an integer: digits, or with rule `lsn` or `auto` PostgreSQL's `X/Y`. Raises `bad_position`."""
    ordinal: int | None = None
    if isinstance(position, int) and not isinstance(position, bool):
        ordinal = position
    elif isinstance(position, str):
        text = position.strip()
        if _DIGITS.fullmatch(text):
            ordinal = int(text)
        elif rule != "integer" and (lsn := _LSN.fullmatch(text)):
            ordinal = (int(lsn.group(1), 16) << 32) | int(lsn.group(2), 16)
    return checked_ordinal(ordinal, position, pointer)


def checked_ordinal(ordinal: int | None, written: Any, pointer: str) -> int:
    """Return an ordinal that a position can hold. Raises InvalidEvent `bad_position`."""
    if ordinal is None or not 0 <= ordinal <= MAX_ORDINAL:
        raise InvalidEvent(
            "bad_position",
            f"{str(written)[:60]!r} is no position: an integer from 0 to 10^20-1, or an LSN such as 0/16B3748 "
            "in a collection whose mapping says `position: {rule: lsn}`",
            pointer=pointer,
        )
    return ordinal


def _by_time(occurred_at: str | None) -> Order:
    moment = parse_time(occurred_at) if occurred_at else None
    if occurred_at is None or moment is None:
        raise InvalidEvent(
            "missing_position", "the event has neither a position nor a time to order it by", pointer="/occurred_at"
        )
    return Order(microseconds(moment), occurred_at, False)


def event_time(raw: Any, pointer: str, *, epoch_utc: bool = True) -> str | None:
    """Read a time in an envelope to RFC 3339 UTC; naive is Asia/Tokyo. None when absent. Raises `wrong_type`."""
    if raw is None:
        return None
    try:
        value = read_value(raw, ColumnRule("datetime", epoch="utc" if epoch_utc else "wall"))
    except ValueError as error:
        raise InvalidEvent("wrong_type", str(error), pointer=pointer) from error
    return utc_text(value) if isinstance(value, datetime) else None


def record_time(mapping: Mapping, columns: dict[str, Any]) -> str:
    """Return the record's own time, for an event that has a position and no time; 1970 when it has none."""
    try:
        value = read_value(columns.get(mapping.updated_at or ""), ColumnRule("datetime"))
    except ValueError:
        return UNKNOWN_TIME
    return utc_text(value) if isinstance(value, datetime) else UNKNOWN_TIME


def sort_key(
    order: Order, op: Op, columns: dict[str, Any], unavailable: tuple[str, ...], *, snapshot: bool, epoch: int
) -> str:
    """Return the sort key; its last part is the hash of the content, so that equal claims end alike everywhere."""
    rank = SNAPSHOT if snapshot else DELETE if op in ("delete", "truncate") else UPSERT
    content = msgspec.json.encode([op, columns, unavailable], order="deterministic")
    tie = hashlib.sha256(content).hexdigest()[:16]
    return Position(epoch, order.ordinal, rank, tie, order.within).sort_key()
