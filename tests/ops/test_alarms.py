"""Alarms and dashboard: each names metrics that a running application exports, and each alarm has its page."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.api.conftest import client, load, runtime, settings  # noqa: F401 - fixtures: a running application
from tests.api.plant import report

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "compose" / "prometheus"
DASHBOARDS = sorted((ROOT / "compose" / "grafana" / "dashboards").glob("*.json"))
RUNBOOK = ROOT / "ops" / "runbook.md"
# Of others: node-exporter's filesystem collector, and Prometheus itself.
FOREIGN = {"node_filesystem_avail_bytes", "node_filesystem_size_bytes", "up", "ALERTS"}
WORDS = {
    "absent", "and", "by", "changes", "count", "histogram_quantile", "max", "min", "or", "predict_linear", "rate",
    "sum", "vector",
}  # fmt: skip


def rules() -> list[dict[str, Any]]:
    """All alarms."""
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """All panels of all dashboards."""
    return [panel for path in DASHBOARDS for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Where each PromQL expression stands, and the expression."""
    yield from ((rule["alert"], rule["expr"]) for rule in rules())
    yield from ((panel["title"], target["expr"]) for panel in panels() for target in panel["targets"])


def metrics_of(expression: str) -> set[str]:
    """Names of metrics in PromQL: what is left without texts, selectors, ranges, label lists and functions."""
    left = re.sub(r'"[^"]*"', "", expression)
    left = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby\s*\([^)]*\)", " ", left)
    return set(re.findall(r"(?<![\w.])[A-Za-z_:][\w:]*", left)) - WORDS


def test_names_are_read_out_of_an_expression() -> None:
    some = 'histogram_quantile(0.95, sum by (le) (rate(a_bucket{x="y z"}[5m]))) > 5 and b == 1e3'
    assert metrics_of(some) == {"a_bucket", "b"}


async def test_each_metric_is_exported_by_a_running_application(
    client: httpx.AsyncClient,  # noqa: F811
    load: Any,  # noqa: F811
) -> None:
    await load([report("R1", "本文。")])
    await client.post("/v1/query", json={"question": "何か。"})
    exported: set[str] = set()
    for family in text_string_to_metric_families((await client.get("/metrics")).text):
        # A family without samples (nothing has happened yet) is exported all the same.
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(family.type, ("",))
        exported |= {family.name + ending for ending in endings}
    missing = {where: names for where, text in expressions() if (names := metrics_of(text) - exported - FOREIGN)}
    assert missing == {}


def test_each_alarm_has_its_page_in_the_runbook_and_each_page_its_alarm() -> None:
    alarms = [rule["alert"] for rule in rules()]
    pages = re.findall(r"^#+ (Shinsen\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(set(alarms)) == len(alarms)
    assert sorted(pages) == sorted(alarms)


def test_each_page_says_what_it_means_how_to_see_and_what_to_do() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    for part in re.split(r"^#+ (?=Shinsen\w+$)", text, flags=re.MULTILINE)[1:]:
        name, page = part.split("\n", 1)
        page = re.split(r"^## ", page, flags=re.MULTILINE)[0]
        assert all(f"**{word}.**" in page for word in ("Means", "See", "Do")), name
        assert "`" in page, f"{name} shows no command"


def test_pages_that_the_dashboard_names_exist() -> None:
    named = {name for panel in panels() for name in re.findall(r"Shinsen\w+", panel.get("description", ""))}
    assert named and named <= {rule["alert"] for rule in rules()}


def test_each_alarm_says_how_urgent_it_is() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"} and rule["annotations"]["summary"], rule["alert"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=["configuration", "rules", "each trouble has its alarm, a healthy stack is silent"],
)
def test_promtool_agrees(arguments: tuple[str, ...]) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here; next: take it out of Debian's package prometheus (.ci/run shows how)")
    done = subprocess.run(
        ["promtool", *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
