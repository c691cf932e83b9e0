"""source list|new-epoch|forget-older|connector: databases and other systems that events come from."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

import typer
from rich.markup import escape

from ops import connector as debezium
from ops.cli.exits import Exit, fail, run_command
from ops.cli.options import Data, Json, Url, check_place
from ops.cli.show import OUT, print_json, print_table
from ops.connection import connect

sources = typer.Typer(no_args_is_help=True, help="Sources: how far they were read, restored databases, connectors.")
Source = Annotated[str, typer.Argument(metavar="SOURCE", help="As `shinsen source list` prints it.")]


@sources.command("list")
def list_sources(url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """Show every source: position, epoch, collections, and whether it seems to have gone backwards."""
    found = _ask("GET", "/v1/sources", url, data)
    if as_json:
        print_json(found)
        return
    rows = (
        (one["source"], one["epoch"], one["position"], one["at"], ", ".join(one["collections"]))
        for one in found["sources"]
    )
    print_table(("source", "epoch", "position", "at", "collections"), rows)
    for warning in found["warnings"]:
        OUT.print(f"[bold yellow]warning:[/] {escape(warning)}")


@sources.command("new-epoch")
def new_epoch(source: Source, url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """After a restore: all events from now on are newer than every one before. Stop the source's connector first."""
    done = _ask("POST", f"/v1/sources/{quote(source, safe='')}/epochs", url, data)
    if as_json:
        print_json(done)
        return
    OUT.print(
        f"{escape(source)} is in epoch {done['epoch']}. Next: start its connector with a new snapshot, wait until it "
        f"was read, then `shinsen source forget-older {escape(source)}` deletes what the restored database lacks"
    )


@sources.command("forget-older")
def forget_older(source: Source, url: Url = None, data: Data = None, as_json: Json = False) -> None:
    """After a new epoch's snapshot was read: delete what it did not hold."""
    done = _ask("POST", f"/v1/sources/{quote(source, safe='')}/forget-older", url, data)
    if as_json:
        print_json(done)
    else:
        names = ", ".join(done["collections"]) or "nothing (no collection has positions)"
        OUT.print(f"older than epoch {done['epoch']} goes from: {escape(names)}")


@sources.command("connector")
def print_connector(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The name of the source, and prefix of its topics.")],
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="schema.table, several.")],
    database: Annotated[str, typer.Option("--database", help="postgresql://user@host/database, without password.")],
    sql: Annotated[
        bool, typer.Option("--sql", help="What the database needs first, instead of the connector.")
    ] = False,
) -> None:
    """Print a Debezium connector as Shinsen wants it, for `curl -X PUT .../connectors/SOURCE/config -d @-`."""
    if any("." not in table for table in tables):
        fail("name tables with their schema: public.work_orders", Exit.USAGE)
    if sql:
        print(debezium.database_script(source, tables))
        return
    given = urlsplit(database)
    if given.scheme not in ("postgres", "postgresql") or not given.hostname or not given.path.strip("/"):
        fail("--database is an address such as postgresql://debezium@db:5432/erp", Exit.USAGE)
    account = {
        "hostname": given.hostname,
        "port": str(given.port or 5432),
        "user": unquote(given.username or "debezium"),
        "password": "${file:/run/secrets/debezium.properties:password}",
        "dbname": unquote(given.path.strip("/")),
    }
    print_json(debezium.connector(source, tables, account))


def _ask(method: str, path: str, url: str | None, data: Path | None) -> Any:
    check_place(url, data)

    async def work() -> Any:
        async with connect(url=url, data=data) as connection:
            return (await connection.request(method, path)).json()

    return run_command(work())
