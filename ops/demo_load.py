"""The demo corpus as change events through the running API, and its lead question."""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ops.connection import ApiProblem, Connection
from ops.publisher import Publisher, Receipt
from ops.readers import BadLine, FileEvent, Reading
from pipeline.errors import InvalidConfiguration
from pipeline.mapping import Mappings, load_mappings
from pipeline.settings import Settings
from schemas.change_event import RawEvent

DEMO = Path(__file__).parent / "demo"
MARK = "demo.json"
POLL_S = 0.2
ASK_WAIT_S = 60


class Loaded(msgspec.Struct, frozen=True):
    """What was published into a data folder, and the tokens that say it is there."""

    fingerprint: str
    tokens: list[str]


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
        known = _known(data)
        if known is None:
            known = await _publish(connection, data, progress)
        else:
            progress.console.print("the demo corpus is in this folder already; nothing is loaded again")
        await _indexed(connection, progress)
        await _check(connection, known)


async def ask_lead_question(connection: Connection) -> dict[str, Any]:
    """Ask the manifest's question."""
    answer: dict[str, Any] = await connection.post("/v1/query", json={"question": manifest()["lead_question"]})
    return answer


async def _publish(connection: Connection, data: Path, progress: Progress) -> Loaded:
    events = demo_events()
    bar = progress.add_task("change events published", total=len(events))
    whole = Receipt(batches=[])
    async for batch in Publisher.over(connection, lane="bulk").stream(events):
        whole.batches.append(batch)
        progress.advance(bar, len(batch.results))
    for refused in whole.rejected:
        progress.console.print(f"rejected: {refused.key or f'event {refused.index}'}: {refused.reason}")
    loaded = Loaded(_fingerprint(events), whole.tokens)
    (data / MARK).write_bytes(msgspec.json.encode(loaded))
    return loaded


async def _indexed(connection: Connection, progress: Progress) -> None:
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


async def _check(connection: Connection, loaded: Loaded) -> None:
    """Hold the tokens against the indexes; a dead letter among them is said by the caller's `dlq`, not here."""
    for token in loaded.tokens:
        try:
            await connection.get("/v1/freshness", params={"token": token, "wait": f"{ASK_WAIT_S}s"})
        except ApiProblem as problem:
            if problem.status != 409:
                raise


def _known(data: Path) -> Loaded | None:
    """Return what an earlier start loaded, when it was this corpus."""
    try:
        loaded = msgspec.json.decode((data / MARK).read_bytes(), type=Loaded)
    except (OSError, msgspec.MsgspecError):
        return None
    return loaded if loaded.fingerprint == _fingerprint(demo_events()) else None


def _fingerprint(events: list[RawEvent]) -> str:
    content = hashlib.sha256()
    for event in events:
        content.update((event.value or b"") + b"\n")
    return content.hexdigest()
