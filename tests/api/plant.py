"""The small corpus of the API tests: one machine's case over several documents, some of them not for all."""

from typing import Any

Event = dict[str, Any]


def event(collection: str, key: str, position: int, record: dict[str, Any] | None) -> Event:
    """Return a native event; without a record a delete."""
    plain: Event = {"source": "plant", "collection": collection, "key": key, "position": position}
    return {**plain, "op": "upsert", "record": record} if record else {**plain, "op": "delete"}


def machine(no: str, position: int = 1, **changes: Any) -> Event:
    """Return a machine's ledger entry."""
    record = {
        "number": no,
        "name": "小型粉砕機",
        "kind": "粉砕機",
        "aliases": "赤い粉砕機",
        "place": "第三倉庫",
        "keeper": "北村次郎",
        "notes": "毎週点検する。",
        "price": 1234567,
        "updated_at": "2025-02-01T09:00:00+09:00",
    }
    return event("machines", no, position, {**record, **changes})


def report(key: str, body: str, position: int = 1, **changes: Any) -> Event:
    """Return a report."""
    record = {
        "title": f"報告 {key}",
        "body": body,
        "machine": None,
        "status": "完了",
        "updated_at": "2025-03-01T09:00:00+09:00",
    }
    return event("reports", key, position, {**record, **changes})


CAUSE = "Q-42の停止原因は、軸受の潤滑不足によって温度が上がったことである。"
RULE = "本手順書は、粉砕機に適用する。運転を始める前に、軸受に油を差さなければならない。"
SECRET = "Q-42の停止について、賠償の交渉を続けている。原因の公表は控えるため、口外しないこと。"
OTHER: dict[str, Any] = {
    "name": "大型選別機",
    "kind": "選別機",
    "aliases": "青い選別機",
    "place": "第一倉庫",
    "keeper": "南田花子",
}
SHORTAGE = "潤滑の記録。軸受の油が少なかったため、週に一度の給油を行うこととした。"
CORPUS: list[Event] = [
    machine("Q-42"),
    machine("Q-420", **OTHER),
    report("R1", f"三月一日に停止した。\n{CAUSE}\n油は翌日に補充した。", machine="Q-42", title="停止報告"),
    report("R2", SHORTAGE, machine="Q-42", status="継続"),
    report("M1", RULE, title="安全手順書"),
    report("S1", SECRET, machine="Q-42", acl=["legal"], title="秘密覚書"),
    report("N1", "食堂の献立は月曜日に変わる。", title="献立のお知らせ", updated_at="2024-01-05T00:00:00+09:00"),
    report("X1", "<b>太字</b>の本文<img src=x onerror=alert(1)>", title="<script>alert(1)</script>"),
]
