"""What `shinsen status --watch` shows: a live view on a terminal, one line an interval elsewhere."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Found = Mapping[str, Any]
ENDS = ("applied", "duplicate", "superseded", "dead_letter")
EVERY_COLLECTION = "*"


class Look(msgspec.Struct, frozen=True):
    """One look at a running Shinsen: `/v1/status` and `/v1/freshness`."""

    at: datetime.datetime
    status: dict[str, Any]
    freshness: dict[str, Any]

    @property
    def stages(self) -> list[dict[str, Any]]:
        """The stages, in the order of the journey."""
        return list((self.freshness.get("operators") or {}).get("stages", []))

    @property
    def warnings(self) -> list[str]:
        """What a person should look at."""
        warnings = (self.freshness.get("operators") or {}).get("warnings", [])
        return [*self.status.get("paused", []), *(w for w in warnings if w not in self.status.get("paused", []))]


def rates(before: Look | None, now: Look) -> dict[str, float]:
    """Return events ended per second since the look before, by how they ended; nothing at the first look."""
    seconds = (now.at - before.at).total_seconds() if before is not None else 0.0
    if before is None or seconds <= 0:
        return {}
    was, has = before.status["counts"], now.status["counts"]
    return {end: max(0, has[f"outcome.{end}"] - was[f"outcome.{end}"]) / seconds for end in ENDS}


def line_of(before: Look | None, now: Look) -> str:
    """Return a look as one line, for logs."""
    marks, times = now.freshness["watermarks"], _overall(now)
    parts = [
        now.at.strftime("%H:%M:%S"),
        str(now.status["generation"]),
        "lag " + " ".join(f"{stage['stage']} {stage['lag']}" for stage in now.stages),
        f"pending {marks['pending']}",
        " ".join(f"{end} {rate:.1f}/s" for end, rate in rates(before, now).items() if rate or end == "applied"),
        " ".join(f"{t['store']} p50 {t['p50_ms']:.0f} p95 {t['p95_ms']:.0f} p99 {t['p99_ms']:.0f} ms" for t in times),
        f"dead letters {_dead_letters(now)}",
        *(f"WARNING {warning}" for warning in now.warnings),
    ]
    return " | ".join(part for part in parts if part)


def view_of(where: str, before: Look | None, now: Look) -> RenderableType:
    """Return a look as a page for a terminal."""
    head = f"{where} · {now.status['profile']} · generation {now.status['generation']} · {now.at:%H:%M:%S} UTC"
    parts: list[RenderableType] = [Text(head, style="bold"), _counts(before, now), *tables_of(now)]
    parts += [Text(warning, style="bold yellow") for warning in now.warnings]
    return Group(*parts)


def tables_of(now: Look) -> list[Table]:
    """Return what a look has more than one of: stages, times, stores, generations; no empty tables."""
    tables = [
        _stages(now),
        _times(now.freshness["change_to_searchable"]),
        _stores(now.status.get("stores", [])),
        _generations(now.status["generations"]),
    ]
    return [table for table in tables if table.row_count]


def _stages(now: Look) -> Table:
    table = _table("stage", "lag", "workers", "oldest", "partitions behind")
    for stage in now.stages:
        behind = [p for p in stage["partitions"] if p["lag"]]
        worst = ", ".join(
            f"{p['topic']}/{p['partition']}: {p['lag']}" for p in sorted(behind, key=lambda p: -p["lag"])[:3]
        )
        table.add_row(
            stage["stage"], str(stage["lag"]), str(stage["members"]), _age(stage["oldest"], now.at), Text(worst)
        )
    return table


def _counts(before: Look | None, now: Look) -> Table:
    marks, counts = now.freshness["watermarks"], now.status["counts"]
    per_second = rates(before, now)
    table = _table("documents", "pending", "to link anew", "dead letters", *(f"{end}/s" for end in ENDS))
    table.add_row(
        str(counts["documents"]),
        str(marks["pending"]),
        str(marks["relinks"]),
        str(_dead_letters(now)),
        *(f"{per_second[end]:.1f}" if per_second else "-" for end in ENDS),
    )
    return table


def _times(times: Sequence[Found]) -> Table:
    table = _table("change to searchable", "store", "changes", "p50 ms", "p95 ms", "p99 ms")
    for one in times:
        name = "all" if one["collection"] == EVERY_COLLECTION else one["collection"]
        figures = (f"{one[share]:.0f}" for share in ("p50_ms", "p95_ms", "p99_ms"))
        table.add_row(Text(name), one["store"], str(one["count"]), *figures)
    return table


def _stores(stores: Sequence[Found]) -> Table:
    table = _table("server", "answers", "since", "")
    for one in stores:
        table.add_row(one["name"], "yes" if one["up"] else "NO", one["since"], Text(one["detail"]))
    return table


def _generations(generations: Sequence[Found]) -> Table:
    table = _table("generation", "state", "progress")
    for one in generations:
        known = {name: value for name, value in one.items() if name not in ("name", "state", "versions")}
        table.add_row(one["name"], one["state"], Text(", ".join(f"{name} {value}" for name, value in known.items())))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name)
    return table


def _overall(now: Look) -> list[Found]:
    return [t for t in now.freshness["change_to_searchable"] if t["collection"] == EVERY_COLLECTION]


def _dead_letters(now: Look) -> int:
    return int(now.status["counts"]["dead_letters"])


def _age(moment: str, now: datetime.datetime) -> str:
    if not moment:
        return "-"
    return f"{max(0.0, (now - datetime.datetime.fromisoformat(moment)).total_seconds()):.1f} s"
