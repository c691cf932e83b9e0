"""Debezium's `source` block: what orders the changes of one row, and when they happened.

A position only has to order the versions of one key, whose changes are serialized by its row lock.
"""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.decoding.positions import Order, checked_ordinal
from pipeline.errors import InvalidEvent
from pipeline.text.calendar import utc_text

_POINTER = "/source"
_BINLOG = re.compile(r".*\.(\d{1,8})")
_SQLSERVER = re.compile(r"([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})")


def source_order(source: dict[str, Any]) -> Order | None:
    """Return the source's own position; None for a connector without one (its times order then).

    PostgreSQL: `lsn` and `sequence`, see `_postgres`. MySQL and MariaDB: binlog file number and `pos`.
    SQL Server: `change_lsn`, for snapshots `commit_lsn`. Oracle: `scn`, then `ssn` among changes of one
    SCN. Raises `bad_position`.
    """
    reader = _READERS.get(str(source.get("connector")))
    return reader(source) if reader else None


def source_time(source: dict[str, Any], payload: dict[str, Any]) -> str | None:
    """Return when the change happened, else when Debezium saw it, as RFC 3339 UTC; None when neither is there."""
    for block in (source, payload):
        for name, per_second in (("ts_ns", 10**9), ("ts_us", 10**6), ("ts_ms", 10**3)):
            number = block.get(name)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                return _time_text(number * 10**6 // per_second, f"/source/{name}")
    return None


def _time_text(micros: int, pointer: str) -> str:
    try:
        return utc_text(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
    except OverflowError as error:
        raise InvalidEvent("wrong_type", "the time is beyond the year 9999", pointer=pointer) from error


def _postgres(source: dict[str, Any]) -> Order | None:
    """Order by what was committed before, then by the change's own LSN.

    An LSN alone does not order a change and a snapshot read of its row: a transaction writes its change at
    100, a snapshot reads the old row at 200, the transaction commits at 300. `sequence` also holds the end
    of the transaction that was sent before this one, and transactions are sent in the order of their
    commits: what came before is never smaller there, and the change at 100 says 201 or more. Reads of an
    incremental snapshot have no `lsn` at all, but where their window was closed.
    """
    before, seen = _sequence(source)
    own = source.get("lsn") if source.get("lsn") is not None else seen
    if own is None:
        return None
    lsn = checked_ordinal(_integer(own), own, f"{_POINTER}/lsn")
    written = f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
    sent = _integer(before)
    if sent is None or sent <= lsn:
        return Order(lsn, written, True)
    return Order(checked_ordinal(sent, before, f"{_POINTER}/sequence"), written, True, within=lsn)


def _sequence(source: dict[str, Any]) -> tuple[Any, Any]:
    """Read `["<end of the transaction before>", "<LSN>"]`; either may be null."""
    try:
        pair = json.loads(source.get("sequence") or "null")
    except (TypeError, ValueError, RecursionError):
        return None, None
    return (pair[0], pair[1]) if isinstance(pair, list) and len(pair) == 2 else (None, None)


def _mysql(source: dict[str, Any]) -> Order | None:
    if source.get("file") is None or source.get("pos") is None:
        return None
    file, pos = _BINLOG.fullmatch(str(source["file"])), _integer(source["pos"])
    written = f"{source['file']}:{source['pos']}"
    ordinal = int(file.group(1)) * 10**12 + pos if file and pos is not None and pos < 10**12 else None
    return Order(checked_ordinal(ordinal, written, f"{_POINTER}/pos"), written, True)


def _sqlserver(source: dict[str, Any]) -> Order | None:
    written = source.get("change_lsn") or source.get("commit_lsn")
    if written is None or written == "NULL":
        return None
    match = _SQLSERVER.fullmatch(str(written))
    ordinal = None
    if match:
        log_file, block, slot = (int(part, 16) for part in match.groups())
        # 80 bits do not fit 20 digits: blocks are 512 bytes of one virtual log file, 2^26 of them are 32 GB.
        fits = log_file < 2**24 and block < 2**26
        ordinal = (log_file << 42) | (block << 16) | slot if fits else None
    return Order(checked_ordinal(ordinal, written, f"{_POINTER}/change_lsn"), str(written), True)


def _oracle(source: dict[str, Any]) -> Order | None:
    if source.get("scn") is None:
        return None
    scn, ssn = _integer(source["scn"]), _integer(source.get("ssn") or 0)
    ordinal = scn * 10**4 + min(ssn or 0, 9999) if scn is not None else None
    return Order(checked_ordinal(ordinal, source["scn"], f"{_POINTER}/scn"), str(source["scn"]), True)


def _integer(raw: Any) -> int | None:
    if isinstance(raw, str) and re.fullmatch(r"[0-9]{1,20}", raw):
        return int(raw)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else None


_READERS = {
    "postgresql": _postgres,
    "mysql": _mysql,
    "mariadb": _mysql,
    "sqlserver": _sqlserver,
    "oracle": _oracle,
}
