"""status --watch: lines for a log, a page for a terminal."""

import datetime
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from ops.cli.watching import Look, line_of, rates, view_of
from tests.ops.commands import ROOT, environment, native, server, shinsen

AT = datetime.datetime(2026, 11, 30, 2, 0, 10, tzinfo=datetime.UTC)
COUNTS = {"documents": 5, "dead_letters": 2, "outcome.applied": 10, "outcome.duplicate": 0, "outcome.superseded": 0,
          "outcome.dead_letter": 2}  # fmt: skip
STAGE = {"stage": "apply", "group": "x.apply-g2", "members": 0, "lag": 7, "oldest": "2026-11-30T02:00:00Z",
         "partitions": [{"topic": "x.analyzed-g2", "partition": 1, "lag": 7, "oldest": ""}]}  # fmt: skip
TIMES = [
    {"collection": "*", "store": "chunks", "count": 3, "p50_ms": 210.0, "p95_ms": 480.4, "p99_ms": 500.0},
    {"collection": "erp/orders", "store": "chunks", "count": 3, "p50_ms": 210.0, "p95_ms": 480.4, "p99_ms": 500.0},
]


def look(seconds: int = 0, applied: int = 10, **operators: Any) -> Look:
    generations = [{"name": "g1", "state": "live", "versions": {}}, {"name": "g2", "state": "building", "done": "41 %"}]
    status = {"profile": "stack", "generation": "g1", "counts": COUNTS | {"outcome.applied": applied},
              "generations": generations, "paused": ["no worker serves the stage apply"]}  # fmt: skip
    seen = {"stages": [STAGE], "warnings": ["no worker serves the stage apply", "outdated"], **operators}
    freshness = {"watermarks": {"pending": 4, "relinks": 1}, "change_to_searchable": TIMES, "operators": seen}
    return Look(AT + datetime.timedelta(seconds=seconds), status, freshness)


def test_rates_are_per_second_since_the_look_before() -> None:
    assert rates(None, look()) == {}
    assert rates(look(), look(2, applied=30)) == {"applied": 10.0, "duplicate": 0, "superseded": 0, "dead_letter": 0}
    assert rates(look(applied=30), look(2, applied=0))["applied"] == 0, "another generation or an emptied store"


def test_a_line_says_lag_rates_times_and_warnings_once() -> None:
    line = line_of(look(), look(2, applied=30))
    assert "lag apply 7 | pending 4 | applied 10.0/s | chunks p50 210 p95 480 p99 500 ms | dead letters 2" in line
    assert line.count("no worker serves") == 1 and line.endswith("WARNING outdated") and "\n" not in line


def test_a_page_shows_stages_collections_and_generations() -> None:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(view_of("http://x", look(), look(2, applied=30)))
    page = captured.get()
    assert re.search(r"apply +7 +0 +12\.0 s +x\.analyzed-g2/1: 7", page)
    assert re.search(r"erp/orders +chunks +3 +210 +480 +500", page)
    assert re.search(r"g2 +building +done 41 %", page)
    assert re.search(r"5 +4 +1 +2 +10\.0", page)


def test_one_look_shows_tables_and_no_data_structures(tmp_path: Path) -> None:
    with server(tmp_path / "d") as running:
        token = running.post(native("MR-1", "F-17の駐車ブレーキを点検した。"))["token"]
        shinsen("search", "ブレーキ", "--min-freshness", token, "--url", running.url)
        shown = shinsen("status", "--url", running.url).stdout
    assert re.search(r"^counts +documents 1,", shown, re.MULTILINE)
    assert re.search(r"^reconcile +0 ", shown, re.MULTILINE)
    assert re.search(r"^all +chunks +1 +\d+ ", shown, re.MULTILINE)
    assert re.search(r"^g1 +live", shown, re.MULTILINE)
    assert "{" not in shown and "(" not in shown


def test_a_server_is_watched_line_by_line(tmp_path: Path) -> None:
    with server(tmp_path / "d") as running:
        running.post(native("MR-1", "F-17の駐車ブレーキを点検した。"))
        command = [sys.executable, "-m", "ops.cli", "status", "--watch", "--every", "0.3", "--url", running.url]
        with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout is not None
            lines = [watching.stdout.readline() for _ in range(6)]
            watching.kill()
    assert all(re.match(r"\d\d:\d\d:\d\d \| g1 \| lag reconcile \d+ index \d+ \| pending ", line) for line in lines)
    assert "applied " in lines[-1] and "chunks p50 " in lines[-1] and "dead letters 0" in lines[-1]
