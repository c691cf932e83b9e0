"""replay: rebuild the indexes, or do documents again."""

import asyncio
import datetime
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from ops.cli.exits import Exit, fail, run_command
from ops.cli.generations import share_of
from ops.cli.options import Data, Json, Url, check_place
from ops.cli.show import OUT, print_json
from ops.connection import Connection, connect

PROGRESS = Console(stderr=True, highlight=False, soft_wrap=True)
LOOK_S = 0.5
LINE_S = 10.0
"""Seconds between two lines of progress where no terminal shows it in place."""


class Into(StrEnum):
    """Where a replay goes."""

    NEW = "new"
    LIVE = "live"


Many = list[str] | None
From = Annotated[
    str,
    typer.Option(
        "--from",
        help="Where to read the source from: beginning, a time (2025-07-08T09:00:00+09:00), or topic:partition:offset,"
        " several separated by commas. A new generation holds all documents whatever is said here: the rest is filled "
        "from the records. Into live it says which documents are done again.",
    ),
]
IntoOption = Annotated[
    Into | None,
    typer.Option(
        "--into",
        help="new: build a generation beside the live one, to compare and promote. live: do documents again where "
        "they are. Without it: build a new one, promote it, prune the old ones.",
    ),
]
Collections = Annotated[
    Many,
    typer.Option(
        "--collection",
        help="source/collection, may be repeated. Into live: only these. Into new: a trial that holds only these; it "
        "is compared, and not promoted until the same command without --collection has filled in the rest.",
    ),
]
Documents = Annotated[
    Many, typer.Option("--document", help="Into live: only these, source/collection/key; may be repeated.")
]
Holding = Annotated[
    Many,
    typer.Option("--holding", help="Into live: only documents that hold this word (a changed dictionary word, alias)."),
]
Current = Annotated[
    bool,
    typer.Option(
        "--current", help="Into live: nothing else is affected, so the generation counts as built with what runs now."
    ),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Begin, and do not wait for the end.")]


def replay(
    start: From = "beginning",
    into: IntoOption = None,
    collection: Collections = None,
    document: Documents = None,
    holding: Holding = None,
    current: Current = False,
    no_wait: NoWait = False,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Rebuild the indexes from the records while questions go on; the same command goes on with one that was cut off.

    Refused, with the reason, when the source cannot supply what is asked.
    """
    check_place(url, data)
    plan: dict[str, Any] = {
        "into": into.value if into else "switch",
        "from": start,
        "collections": collection or [],
        "documents": document or [],
        "holding": holding or [],
        "current": current,
    }
    done = run_command(_replay(plan, no_wait, url, data))
    print_json(done) if as_json else _say(done, plan["into"], no_wait)


def _say(done: Mapping[str, Any], into: str, no_wait: bool) -> None:
    if "replaced" in done:
        OUT.print(
            f"generation {escape(done['generation'])} is live, built from {done['documents']} documents; "
            f"{escape(', '.join(done['pruned']) or 'none')} is gone"
        )
    elif no_wait:
        OUT.print(f"{escape(done['generation'])}: begun, {done['documents']} documents; `shinsen generations` shows it")
    elif into == Into.LIVE:
        OUT.print(f"{done['documents']} documents were done again in {escape(done['generation'])}")
    else:
        _say_built(done)


def _say_built(done: Mapping[str, Any]) -> None:
    name = escape(done["generation"])
    OUT.print(
        f"{name} is {done['phase']}: {done['done']} of {done['records']} documents, {done['filled']} of them from the "
        "records because the source did not have them"
    )
    OUT.print(f"next: `shinsen compare LIVE {name}`, `shinsen promote {name}`, or `shinsen prune {name}`")


async def _replay(plan: dict[str, Any], no_wait: bool, url: str | None, data: Path | None) -> dict[str, Any]:
    async with connect(url=url, data=data) as connection:
        response = await connection.request("POST", "/v1/replay", json=plan, endless=True)
        started: dict[str, Any] = response.json()
        if no_wait:
            return started
        built = await _followed(connection, started["generation"], plan["into"] == "live")
        if plan["into"] == "live":
            return started
        if plan["into"] == "new":
            return started | {name: built[name] for name in ("phase", "records", "done", "filled")}
        return started | await _switched(connection, built)


async def _switched(connection: Connection, built: Mapping[str, Any]) -> dict[str, Any]:
    path = f"/v1/generations/{built['name']}/promote"
    promoted = (await connection.request("POST", path, json={}, endless=True)).json()
    pruned = (await connection.request("POST", "/v1/generations/prune", json={}, endless=True)).json()
    return {"replaced": promoted["replaced"], "documents": built["records"], **pruned}


async def _followed(connection: Connection, name: str, live: bool) -> dict[str, Any]:
    """Show progress until it is done; what nobody goes on with ends the command."""
    printed, loop = float("-inf"), asyncio.get_running_loop()
    with PROGRESS.status("") as shown:
        while True:
            found = {g["name"]: g for g in (await connection.get("/v1/generations"))["generations"]}
            one = found.get(name)
            if one is None:
                fail(f"{name} was pruned meanwhile", Exit.FAILED)
            if (live and not one["relinks"]) or (not live and one["phase"] in ("complete", "partial")):
                return dict(one)
            shown.update(escape(_line(one)))
            if not PROGRESS.is_terminal and loop.time() - printed >= LINE_S:
                printed = loop.time()
                PROGRESS.print(escape(_line(one)))
            if one["stopped"] and not live:
                fail(f"{name}: {one['stuck']}", Exit.UNAVAILABLE)
            await asyncio.sleep(LOOK_S)


def _line(one: Mapping[str, Any]) -> str:
    parts = [f"{one['name']} {one['phase'] or one['state']}: {share_of(one)}", f"{one['rate']:.1f}/s"]
    if one["left_s"] is not None:
        parts.append(f"{datetime.timedelta(seconds=round(one['left_s']))} left")
    parts += [f"lag {one['lag']}"] if one["lag"] is not None else []
    parts += [f"{one['relinks']} to be done again"] if one["relinks"] else []
    return ", ".join(parts + ([f"STUCK: {one['stuck']}"] if one["stuck"] else []))
