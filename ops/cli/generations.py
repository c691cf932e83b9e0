"""generations, compare, promote, rollback, prune: what becomes of generations."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.markup import escape

from ops.cli.exits import Exit, fail, run_command
from ops.cli.options import Data, Json, Url, check_place
from ops.cli.show import OUT, print_json, print_table
from ops.connection import connect

Many = list[str] | None
Force = Annotated[bool, typer.Option("--force", help="Even when it is incomplete or older than the live one.")]
WaitFor = Annotated[str, typer.Option("--wait", help="How long to wait for what is on its way (5s, 1m).")]
Names = Annotated[list[str] | None, typer.Argument(help="Generations; without any, all that were live before.")]
Questions = Annotated[
    Path | None, typer.Option("--questions", help='JSON lines with a member "question": ask both, compare the answers.')
]


def share_of(one: Mapping[str, Any]) -> str:
    """Return how much of the records a generation has, for people."""
    percent = 100 * one["done"] / one["records"] if one["records"] else 100.0
    return f"{one['done']}/{one['records']} ({percent:.0f} %)"


def generations(url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """Show generations: state, progress, rate, lag, time left, the versions they were built with, and what is stuck."""
    found = _ask("GET", "/v1/generations", None, url, data)
    if as_json:
        print_json(found)
        return
    rows = [
        (one["name"], one["state"], one["phase"], share_of(one), f"{one['rate']:.1f}/s", _or_dash(one["left_s"]),
         _or_dash(one["lag"]), _or_dash(one["members"]), one["filled"], one["created_at"][:19])
        for one in found["generations"]
    ]  # fmt: skip
    columns = ("generation", "state", "build", "documents", "rate", "left s", "lag", "workers", "filled", "created")
    print_table(columns, rows)
    for one in found["generations"]:
        versions = ", ".join(f"{part} {version}" for part, version in sorted(one["versions"].items()))
        OUT.print(f"[dim]{escape(one['name'])}: {escape(versions)}[/]")
        if one["stuck"]:
            OUT.print(f"[bold yellow]{escape(one['name'])}:[/] {escape(one['stuck'])}")


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def promote(
    generation: Annotated[str, typer.Argument(help="The generation to make live.")],
    force: Force = False,
    wait: WaitFor = "30s",
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a generation live: one row, all stores at once. Refused while incomplete, or older than the live one."""
    _switch(f"/v1/generations/{generation}/promote", force, wait, url, data, as_json)


def rollback(
    force: Force = False, wait: WaitFor = "30s", url: Url = None, data: Data = None, as_json: Json = False
) -> None:
    """Make the generation live that was so before; it followed all changes, so it is as fresh."""
    _switch("/v1/generations/rollback", force, wait, url, data, as_json)


def _switch(path: str, force: bool, wait: str, url: str | None, data: Path | None, as_json: bool) -> None:
    done = _ask("POST", path, {"force": force, "wait": wait}, url, data)
    if as_json:
        print_json(done)
        return
    OUT.print(
        f"{escape(done['generation'])} is live{escape(', before it ' + done['replaced']) if done['replaced'] else ''}"
    )
    for warning in done["warnings"]:
        OUT.print(f"[yellow]warning:[/] {escape(warning)}")


def prune(generation: Names = None, url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """Remove generations with their indexes, topics and rows; never the live one. A rebuild is dropped this way."""
    done = _ask("POST", "/v1/generations/prune", {"generations": generation or []}, url, data)
    if as_json:
        print_json(done)
    else:
        OUT.print(f"gone: {escape(', '.join(done['pruned']) or 'nothing was there to remove')}")


def compare(
    first: Annotated[str, typer.Argument(help="A generation.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    collection: Annotated[Many, typer.Option("--collection", help="source/collection, may be repeated.")] = None,
    questions: Questions = None,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Read two generations back and classify their differences; exit code 1 when records or decisions differ."""
    asked = _questions(questions)
    body = {"first": first, "second": second, "collections": collection or [], "questions": asked}
    found = _ask("POST", "/v1/generations/compare", body, url, data)
    print_json(found) if as_json else _show_comparison(found)
    if not found["exact"]:
        raise typer.Exit(Exit.FAILED)


class _Question(msgspec.Struct):
    question: str


def _questions(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        fail(f"{path} cannot be read: {error}", Exit.USAGE)
    asked = []
    for number, line in enumerate(lines, start=1):
        try:
            asked += [msgspec.json.decode(line, type=_Question).question] if line.strip() else []
        except msgspec.DecodeError as error:
            fail(f'{path}:{number}: {error}; each line is a JSON object with the member "question"', Exit.USAGE)
    return asked


def _show_comparison(found: Mapping[str, Any]) -> None:
    comparison = found["comparison"]
    rows = [
        (part, kind, difference["count"], ", ".join(difference["examples"]))
        for part in ("records", "decisions", "chunks", "facts")
        for kind, difference in comparison[part].items()
    ]
    OUT.print(
        f"{comparison['documents']} documents of {escape(comparison['first'])} and {escape(comparison['second'])}"
    )
    if rows:
        print_table(("part", "difference", "number", "such as"), rows)
    else:
        OUT.print("records, decisions, chunks and facts are equal")
    if rankings := found["rankings"]:
        OUT.print(
            f"{rankings['questions']} questions: overlap@10 {rankings['overlap']:.3f}, the same document on top "
            f"{rankings['same_first']:.3f}"
        )
        changed = [
            (c["question"], f"{c['overlap']:.2f}", ", ".join(c["only_first"]), ", ".join(c["only_second"]))
            for c in rankings["changed"]
        ]
        if changed:
            print_table(("question", "overlap", f"only {comparison['first']}", f"only {comparison['second']}"), changed)
        for note in rankings["notes"]:
            OUT.print(f"[yellow]note:[/] {escape(note)}")


def _ask(method: str, path: str, body: Mapping[str, Any] | None, url: str | None, data: Path | None) -> dict[str, Any]:
    check_place(url, data)

    async def work() -> dict[str, Any]:
        async with connect(url=url, data=data) as connection:
            given = {} if body is None else {"json": body}
            answer: dict[str, Any] = (await connection.request(method, path, endless=True, **given)).json()
            return answer

    return run_command(work())
