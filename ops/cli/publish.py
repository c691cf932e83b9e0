"""publish: files and folders as change events."""

import contextlib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ops.cli.exits import ERRORS, Exit, fail, run_command
from ops.cli.options import Data, Json, Url, check_place, positive, settings_or_fail
from ops.cli.show import OUT, print_json, print_table
from ops.connection import connect
from ops.profile import with_remembered
from ops.publisher import Publisher
from ops.publishing import Publishing, Refusal, Report
from ops.readers import Reading
from pipeline.errors import InvalidConfiguration
from pipeline.mapping import load_mappings

SHOWN = 20


class FileFormat(StrEnum):
    """How a file is read; by its ending when left out."""

    EVENTS_JSONL = "events-jsonl"
    EVENTS_JSON = "events-json"
    CSV = "csv"
    MARKDOWN_FOLDER = "markdown-folder"


class LaneName(StrEnum):
    """Live changes go before bulk loads."""

    LIVE = "live"
    BULK = "bulk"


class Order(StrEnum):
    """Which time orders the versions of a row or document."""

    RECORD = "record"
    FILE = "file"


Source = Annotated[str, typer.Option("--source", help="Source system of rows and documents.")]
Collection = Annotated[str, typer.Option("--collection", help="Collection of rows and documents.")]
Key = Annotated[str, typer.Option("--key", help="Key columns, comma-separated, in place of the mapping's.")]
Form = Annotated[FileFormat | None, typer.Option("--format", help="By the ending when left out.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Found out when left out.")]
MappingFolder = Annotated[Path | None, typer.Option("--mappings", help="Mappings, for keys and times.")]
OrderBy = Annotated[Order, typer.Option("--order", help="Which time orders versions.")]
FullSync = Annotated[bool, typer.Option("--full-sync", help="Also delete what is gone from the file.")]
Lane = Annotated[LaneName, typer.Option("--lane", help="live: before bulk loads.")]
WaitIndexed = Annotated[
    bool | None, typer.Option("--wait/--no-wait", help="Until all is indexed; by default when no server runs.")
]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds that --wait may take.")]


def publish(
    path: Annotated[Path, typer.Argument(help="JSONL, JSON, CSV, or a folder of Markdown and text.")],
    source: Source = "",
    collection: Collection = "",
    key: Key = "",
    form: Form = None,
    encoding: Encoding = None,
    mappings: MappingFolder = None,
    order: OrderBy = Order.RECORD,
    full_sync: FullSync = False,
    lane: Lane = LaneName.BULK,
    wait: WaitIndexed = None,
    timeout: Timeout = 3600.0,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Publish a file or folder; says what was refused, with file and line. Exit code 5 when something was."""
    check_place(url, data)
    positive(timeout, "--timeout")
    if full_sync and not (source and collection):
        fail("--full-sync needs --source and --collection", Exit.USAGE)
    keys = tuple(name.strip() for name in key.split(",") if name.strip())
    options = {"source": source, "collection": collection, "key": keys, "encoding": encoding, "order": order.value}
    reading = _open(path, mappings, data, format=form.value if form else None, lane=lane.value, **options)

    async def work() -> Report:
        async with connect(url=url, data=data, create=True) as connection:
            with _progress(path) as progress:
                publishing = Publishing(connection, Publisher.over(connection, lane=lane.value), progress)
                await _publish(publishing, reading, full_sync=full_sync, timeout=timeout)
                if wait or (wait is None and connection.in_process):
                    await publishing.settle(timeout)
            return publishing.report

    _show(run_command(work()), as_json=as_json)


def _open(path: Path, mappings: Path | None, data: Path | None, **options: Any) -> Reading:
    """Open the file with the mappings given, else those that the data folder was built with."""
    folder = mappings or with_remembered(settings_or_fail(data=data)).mappings
    try:
        return Reading(path, load_mappings([folder] if folder else []), **options)
    except InvalidConfiguration as error:
        fail(str(error), Exit.USAGE)


async def _publish(publishing: Publishing, reading: Reading, *, full_sync: bool, timeout: float) -> None:
    await publishing.publish(reading)
    if full_sync:
        # What is not indexed yet is not listed yet, and would be taken for gone.
        await publishing.settle(timeout)
        await publishing.sync_deletes(reading)


@contextlib.contextmanager
def _progress(path: Path) -> Iterator["CountedProgress"]:
    with Progress(
        SpinnerColumn(), TextColumn("{task.description} {task.completed:.0f}"), TimeElapsedColumn(), console=ERRORS
    ) as bar:
        yield CountedProgress(bar, str(path))


class CountedProgress:
    """Events sent so far."""

    def __init__(self, bar: Progress, name: str) -> None:
        """Show `name` and a count."""
        self._bar, self._task = bar, bar.add_task(f"{name}: events sent", total=None)

    def __call__(self, number: int) -> None:
        """Count some more."""
        self._bar.advance(self._task, number)


def _show(report: Report, *, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        _print_refusals("rejected", report.rejected)
        _print_refusals("dead letters (accepted, but not applied)", report.dead_letters)
        rows = [("accepted", report.accepted), ("of these deletes", report.deleted), ("rejected", len(report.rejected))]
        if report.waited:
            rows.append(("dead letters", len(report.dead_letters)))
        print_table(("events", "number"), rows)
        OUT.print("all indexed" if report.waited else "indexing goes on in the server; `shinsen status` shows it")
    if report.rejected or report.dead_letters:
        raise typer.Exit(Exit.REFUSED)


def _print_refusals(title: str, refusals: list[Refusal]) -> None:
    if refusals:
        rows = [(r.where, r.key, r.code, r.reason) for r in refusals[:SHOWN]]
        print_table(("where", "key", "code", "reason"), rows, title=title)
        if len(refusals) > SHOWN:
            OUT.print(f"... and {len(refusals) - SHOWN} more; --json lists all")
