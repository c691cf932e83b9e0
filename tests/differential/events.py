"""Events for random histories: a ledger whose aliases other documents mention, reports, notes, and bad ones."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pipeline.decoding.debezium_schema import MARKER
from schemas.change_event import RawEvent

MACHINES = ("F-17", "K-08")
ALIASES = ("赤い荷役車", "青い荷役車", "三号機", "赤い荷役車、三号機", "F-18", "荷", "", "サーバー室", "A・B", "ABC号")
KINDS = ("フォークリフト", "天井クレーン", "")
GROUPS: tuple[list[str], ...] = (["all-staff"], ["maintenance"], ["all-staff", "!contractors"], [])
SENTENCES = (
    "赤い荷役車が構内で停止した。",
    "青い荷役車を点検した。",
    "三号機のブレーキが鳴った。",
    "F-17は、フォークリフトである。",
    "本マニュアルは、フォークリフトに適用する。",
    "天井クレーンK-08の点検表を更新した。",
    "荷を降ろした。",
    "赤 い荷役車は整備中。",
    "サーバー室の鍵、サーバ 室の灯り。",
    "A・Bは別の棟。",
    "ABC 号は休車。",
)
NOTES = ("赤い荷役車の当番表", "F-17の鍵は事務所", "三号機")
YEAR = 1_751_900_000


class Change(NamedTuple):
    """One change in a source. Its position in the history says when it happened, whenever it arrives."""

    kind: str
    key: str = ""
    content: tuple[Any, ...] = ()
    tie: bool = False
    """At the same position as the change before it (if that is of another content, the content's hash decides)."""


def history(changes: list[Change]) -> list[RawEvent]:
    """Give each change its position and write it as its source would."""
    events: list[RawEvent] = []
    ordinal = 0
    for change in changes:
        ordinal += 0 if change.tie and ordinal else 10
        events.append(_raw(change, ordinal))
    return events


def _raw(change: Change, ordinal: int) -> RawEvent:
    if change.kind == "garbage":
        return RawEvent(value=change.content[0])
    if change.kind.startswith("machine") or change.kind == "truncate":
        return _ledger(change, ordinal)
    if change.kind.startswith("note"):
        title = change.content[0] if change.content else None
        return _note(change.key, ordinal, {"title": title, "body": title} if title else None)
    if change.kind == "report_gone":
        return _native(change.key, ordinal, op="delete")
    return _native(change.key, ordinal, record=_report(change) if change.content else {"body": "赤い荷役車"})


def _ledger(change: Change, ordinal: int) -> RawEvent:
    match change.kind:
        case "machine":
            return _debezium("u", ordinal, after=_machine(change))
        case "machine_part":
            # A large column that did not change is not sent.
            return _debezium("u", ordinal, after=_machine(change) | {"note": MARKER, "aliases": MARKER})
        case "machine_gone":
            return _debezium("d", ordinal, before={"equipment_no": change.key})
        case "machine_bad":
            return _debezium("u", ordinal, after={"equipment_no": change.key, "aliases": "赤い荷役車"})
    return _debezium("t", ordinal)


def _machine(change: Change) -> dict[str, Any]:
    aliases, kind, acl, price = change.content
    row = {"equipment_no": change.key, "name": "荷役機械", "aliases": aliases, "kind": kind, "acl": acl}
    return row | {"price": price, "note": "F-17とK-08は隣に置く。"}


def _report(change: Change) -> dict[str, Any]:
    sentences, acl, author = change.content
    return {"title": f"報告{change.key}", "body": "\n".join(sentences), "acl": acl, "author": author}


def _debezium(op: str, ordinal: int, *, before: Any = None, after: Any = None) -> RawEvent:
    source = {"connector": "postgresql", "name": "erp", "schema": "public", "table": "equipment", "lsn": ordinal}
    source["ts_ms"] = (YEAR + ordinal) * 1000
    return _json({"op": op, "before": before, "after": after, "source": source})


def _native(key: str, ordinal: int, **more: Any) -> RawEvent:
    envelope = {"source": "dms", "collection": "reports", "key": key, "position": ordinal}
    return _json(envelope | {"occurred_at": _time(ordinal)} | more)


def _note(key: str, ordinal: int, data: Any) -> RawEvent:
    kind = "note.updated" if data else "note.deleted"
    event = {"specversion": "1.0", "id": str(ordinal), "source": "/memo/notes", "type": kind, "subject": key}
    return _json(event | {"time": _time(ordinal)} | ({"data": data} if data else {}))


def _time(ordinal: int) -> str:
    return datetime.fromtimestamp(YEAR + ordinal, UTC).isoformat()


def _json(body: Any) -> RawEvent:
    return RawEvent(value=json.dumps(body, ensure_ascii=False).encode())
