"""status, digest: what an operator looks at."""

import asyncio
import contextlib
import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.markup import escape

from ops.cli.exits import ERRORS, Exit, run_command
from ops.cli.options import Data, Json, Url, check_place, positive
from ops.cli.show import OUT, print_json, print_table
from ops.cli.watching import Look, line_of, tables_of, view_of
from ops.connection import ApiProblem, Connection, Unreachable, connect

Watch = Annotated[
    bool, typer.Option("--watch", help="Until Ctrl-C: a live view on a terminal, elsewhere a line an interval.")
]
Every = Annotated[float, typer.Option("--every", help="Seconds between two prints of --watch.")]


def status(
    watch: Watch = False,
    every: Every = 1.0,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show counts, watermarks, pending documents, generations and models; exit code 3 while indexing is paused."""
    check_place(url, data)
    positive(every, "--every")

    async def work() -> dict[str, Any]:
        async with connect(url=url, data=data) as connection:
            if watch and not as_json:
                await _watch(connection, every)
            while True:
                look = await _look(connection)
                print_json(look.status) if as_json else _show_status(look, connection.where)
                if not watch:
                    return look.status
                await asyncio.sleep(every)

    if run_command(work()).get("paused"):
        raise typer.Exit(Exit.UNAVAILABLE)


async def _watch(connection: Connection, every: float) -> None:
    """Look again and again; a server that goes away is waited for, since whoever watches wants to see it return."""
    before = look = await _look(connection)
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(Live(console=OUT, auto_refresh=False)) if OUT.is_terminal else None
        while True:
            if live is not None:
                live.update(view_of(connection.where, before if before is not look else None, look), refresh=True)
            else:
                print(line_of(before if before is not look else None, look), flush=True)
            await asyncio.sleep(every)
            try:
                before, look = look, await _look(connection)
            except (Unreachable, ApiProblem) as error:
                ERRORS.print(f"[yellow]{escape(str(error))}[/]")


async def _look(connection: Connection) -> Look:
    status, freshness = await connection.get("/v1/status"), await connection.get("/v1/freshness")
    return Look(datetime.datetime.now(datetime.UTC), status, freshness)


def digest(url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """Read every store back and print one hash per part: equal digests mean equal content."""
    parts = _operate("GET", "/v1/digest", url, data)
    print_json(parts) if as_json else print_table(("part", "hash"), parts.items())


def _operate(method: str, path: str, url: str | None, data: Path | None) -> dict[str, Any]:
    check_place(url, data)

    async def work() -> dict[str, Any]:
        async with connect(url=url, data=data) as connection:
            response = await connection.request(method, path, endless=True)
            answer: dict[str, Any] = response.json()
            return answer

    return run_command(work())


def _show_status(look: Look, where: str) -> None:
    print_table(("", where), _status_rows(look.status))
    for table in tables_of(look):
        OUT.print()
        OUT.print(table)
    for reason in look.status.get("paused", []):
        OUT.print(f"[bold yellow]paused:[/] {escape(reason)}")


def _status_rows(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Flatten what the runtime says, one line a member, in its own order; what stands in tables is left to them."""
    rows: list[tuple[str, str]] = []
    for name, value in found.items():
        if name == "paused" or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
            continue
        if isinstance(value, dict):
            shown = ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
        elif isinstance(value, list):
            shown = ", ".join(_plain(item) for item in value) or "none"
        else:
            shown = _plain(value)
        rows.append((name.replace("_", " "), shown))
    return rows


def _plain(value: object) -> str:
    if isinstance(value, dict):
        inner = (f"{k} {_plain(v)}" for k, v in value.items() if not isinstance(v, dict))
        return "(" + ", ".join(inner) + ")"
    return "none" if value is None else str(value)
