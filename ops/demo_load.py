"""The demo corpus as change events through the running API, and its lead question."""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.connection import Connection
from ops.publisher import Publisher, Receipt
from ops.readers import BadLine, FileEvent, Reading
from pipeline.errors import InvalidConfiguration
from pipeline.mapping import Mappings, load_mappings
from pipeline.settings import Settings
from schemas.change_event import RawEvent

DEMO = Path(__file__).parent / "demo"
MARK = "demo.json"
POLL_S = 0.2


def manifest() -> dict[str, Any]:
    """Return the demo's list of files, in the order of loading."""
    content: dict[str, Any] = yaml.safe_load((DEMO / "manifest.yaml").read_text(encoding="utf-8"))
    return content


def demo_settings(settings: Settings) -> Settings:
    """Return the settings with the demo's mappings, ontology and patterns."""
    names = ("mappings", "ontology", "patterns")
    listed = manifest()
    return settings.model_copy(update={name: DEMO / listed[name] for name in names})


def demo_events() -> list[RawEvent]:
    """Read all files of the manifest."""
    listed = manifest()
    mappings = load_mappings([DEMO / listed["mappings"]])
    return [event for entry in listed["files"] for event in _events_of(entry, mappings)]


def _events_of(entry: Mapping[str, Any], mappings: Mappings) -> list[RawEvent]:
    reading = Reading(
        DEMO / entry["path"],
        mappings,
        source=entry["source"],
        collection=entry["collection"],
        format=entry["format"],
        encoding=entry.get("encoding"),
    )
    items = list(reading)
    if bad := [f"{item.where}: {item.reason}" for item in items if isinstance(item, BadLine)]:
        raise InvalidConfiguration(f"the demo corpus cannot be read: {bad[0]}")
    return [item.event for item in items if isinstance(item, FileEvent)]


async def load_demo(connection: Connection, data: Path, console: Console | None = None) -> None:
    """Publish the corpus unless this folder has it, then wait until all of it is indexed, with progress bars."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console or Console(highlight=False)) as progress:
        if not _known(data):
            await _publish(connection, data, progress)
        else:
            progress.console.print("the demo corpus is in this folder already; nothing is loaded again")
        await indexed(connection, progress)


async def ask_lead_question(connection: Connection) -> dict[str, Any]:
    """Ask the manifest's question."""
    answer: dict[str, Any] = await connection.post("/v1/query", json={"question": manifest()["lead_question"]})
    return answer


async def _publish(connection: Connection, data: Path, progress: Progress) -> None:
    events = demo_events()
    bar = progress.add_task("change events published", total=len(events))
    whole = Receipt(batches=[])
    async for batch in Publisher.over(connection, lane="bulk").stream(events):
        whole.batches.append(batch)
        progress.advance(bar, len(batch.results))
    for refused in whole.rejected:
        progress.console.print(f"rejected: {refused.key or f'event {refused.index}'}: {refused.reason}")
    (data / MARK).write_text(_fingerprint(events), encoding="ascii")


async def indexed(connection: Connection, progress: Progress) -> None:
    """Show both stages until nothing is pending."""
    first: Mapping[str, int] | None = None
    bars: dict[str, Any] = {}
    while True:
        pending = (await connection.get("/v1/status"))["pending"]
        if first is None:
            if not any(pending.values()):
                return
            first = pending
            bars["text"] = progress.add_task("searchable by text", total=pending["text"] or None)
            bars["documents"] = progress.add_task("with vectors and facts", total=pending["documents"])
        for name, bar in bars.items():
            progress.update(bar, completed=max(0, first[name] - pending[name]))
        if not any(pending.values()):  # re-linking counts, too: names that other documents declare
            return
        await asyncio.sleep(POLL_S)


def _known(data: Path) -> bool:
    """Say whether an earlier start loaded this very corpus into the folder."""
    mark = data / MARK
    return mark.exists() and mark.read_text(encoding="ascii", errors="replace") == _fingerprint(demo_events())


def _fingerprint(events: list[RawEvent]) -> str:
    content = hashlib.sha256()
    for event in events:
        content.update((event.value or b"") + b"\n")
    return content.hexdigest()
