"""dlq list|show|retry: events that could not be applied as they are."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from ops.cli.exits import Exit, fail, run_command
from ops.cli.options import Data, Json, Url, check_place
from ops.cli.show import OUT, print_json, print_table
from ops.connection import Connection, connect, dead_letters

letters = typer.Typer(no_args_is_help=True, help="Dead letters: list them, look at one, try again.")


@letters.command("list")
def list_letters(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are resolved.")] = False,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List dead letters with their reasons; exit code 5 when there are open ones."""
    found = _over(url, data, lambda connection: _listed(connection, everything))
    if as_json:
        print_json(found)
    else:
        rows = (
            (item["id"], item["code"], item.get("document", ""), item.get("stage", ""), item["reason"])
            for item in found
        )
        print_table(("id", "code", "document", "stage", "reason"), rows)
        OUT.print(f"[dim]{len(found)} dead letters[/]")
    if any(not item.get("resolved") for item in found):
        raise typer.Exit(Exit.REFUSED)


@letters.command("show")
def show_letter(
    letter: Annotated[str, typer.Argument(help="Id, as `shinsen dlq list` prints it.")],
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show one dead letter with reason, position and payload."""
    found = _over(url, data, lambda connection: connection.get(f"/v1/dead-letters/{quote(letter, safe='')}"))
    print_json(found) if as_json else print_table(("", letter), found.items())


@letters.command("retry")
def retry_letters(
    chosen: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids; or --all.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are open.")] = False,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Try dead letters again, after a mapping or a limit was put right; exit code 5 when one was refused again."""
    if bool(chosen) == everything:
        fail("give ids or --all, one of them", Exit.USAGE)
    done = _over(url, data, lambda connection: _retried(connection, chosen))
    print_json(done) if as_json else print_table(("id", "done"), done.items())
    if any(not text.startswith(("queued", "already", "superseded")) for text in done.values()):
        raise typer.Exit(Exit.REFUSED)


def _over(url: str | None, data: Path | None, ask: Any) -> Any:
    """Run one request function over a connection."""
    check_place(url, data)

    async def work() -> Any:
        async with connect(url=url, data=data) as connection:
            return await ask(connection)

    return run_command(work())


async def _listed(connection: Connection, everything: bool) -> list[dict[str, Any]]:
    return [letter async for letter in dead_letters(connection, resolved=everything)]


async def _retried(connection: Connection, chosen: list[str] | None) -> dict[str, str]:
    ids = chosen or [item["id"] for item in await _listed(connection, False)]
    return {name: await _retry(connection, name) for name in ids}


async def _retry(connection: Connection, letter: str) -> str:
    return str((await connection.post(f"/v1/dead-letters/{quote(letter, safe='')}/retry"))["status"])
