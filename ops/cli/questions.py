"""ask, search, sparql: reading."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ops.cli.exits import Exit, fail, run_command
from ops.cli.options import Data, Groups, Json, MinFreshness, Url, Wait, check_place
from ops.cli.show import OUT, print_answer, print_hits, print_json, print_table
from ops.connection import connect

TopK = Annotated[int, typer.Option("--top-k", min=1, max=100, help="How many pieces of evidence or hits.")]
Filter = Annotated[str | None, typer.Option("--filters", help='Filters as JSON: {"source": ["cmms"]}.')]

RESULTS_JSON = "application/sparql-results+json"


class QuerySource(StrEnum):
    """Where an answer may come from."""

    AUTO = "auto"
    DB = "db"
    VECTOR = "vector"
    GRAPH = "graph"
    ALL = "all"


class SparqlFormat(StrEnum):
    """How SPARQL results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TURTLE = "turtle"


_ACCEPT = {
    SparqlFormat.TABLE: f"{RESULTS_JSON}, text/turtle;q=0.9",
    SparqlFormat.JSON: RESULTS_JSON,
    SparqlFormat.CSV: "text/csv",
    SparqlFormat.TURTLE: "text/turtle",
}


def ask(
    question: Annotated[str, typer.Argument(help="The question, in Japanese or English.")],
    source: Annotated[QuerySource, typer.Option(help="Where to look.")] = QuerySource.AUTO,
    top_k: TopK = 10,
    filters: Filter = None,
    min_freshness: MinFreshness = None,
    wait: Wait = "5s",
    groups: Groups = None,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Ask a question; the answer comes with citations, paths, and the freshness of each store."""
    body: dict[str, Any] = {"question": question, "source": source.value, "top_k": top_k, "wait": wait}
    response = _read("/v1/query", _with(body, filters, min_freshness), url, data, groups)
    print_json(response) if as_json else print_answer(response)


def search(
    query: Annotated[str, typer.Argument(help="What to search for.")],
    top_k: TopK = 10,
    offset: Annotated[int, typer.Option(min=0, max=1000, help="Hits to skip.")] = 0,
    filters: Filter = None,
    min_freshness: MinFreshness = None,
    wait: Wait = "5s",
    groups: Groups = None,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Search passages, without an answer."""
    body: dict[str, Any] = {"query": query, "top_k": top_k, "offset": offset, "wait": wait}
    response = _read("/v1/search", _with(body, filters, min_freshness), url, data, groups)
    print_json(response) if as_json else print_hits(response)


def sparql(
    query: Annotated[str | None, typer.Argument(help="A SPARQL query that reads; - reads standard input.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the query from a file.")] = None,
    form: Annotated[SparqlFormat, typer.Option("--format", help="How results are printed.")] = SparqlFormat.TABLE,
    groups: Groups = None,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run a SPARQL query (SELECT, ASK, CONSTRUCT, DESCRIBE) over what the asker may read."""
    check_place(url, data)
    text = _query_text(query, file)
    form = SparqlFormat.JSON if as_json else form

    async def work() -> tuple[str, bytes]:
        async with connect(url=url, data=data, groups=groups) as connection:
            response = await connection.request(
                "POST", "/v1/sparql", json={"query": text}, headers={"accept": _ACCEPT[form]}
            )
            return response.headers.get("content-type", ""), response.content

    media, content = run_command(work())
    if form is SparqlFormat.TABLE and "json" in media:
        _print_bindings(msgspec.json.decode(content))
    else:
        sys.stdout.write(content.decode().rstrip("\n") + "\n")


def _read(path: str, body: dict[str, Any], url: str | None, data: Path | None, groups: str | None) -> dict[str, Any]:
    check_place(url, data)

    async def work() -> dict[str, Any]:
        async with connect(url=url, data=data, groups=groups) as connection:
            response: dict[str, Any] = await connection.post(path, json=body)
            return response

    return run_command(work())


def _with(body: dict[str, Any], filters: str | None, min_freshness: str | None) -> dict[str, Any]:
    """Add what was given."""
    if min_freshness is not None:
        body["min_freshness"] = min_freshness
    if filters is not None:
        try:
            body["filters"] = msgspec.json.decode(filters, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            fail(f"--filters is no JSON object: {error}", Exit.USAGE)
    return body


def _query_text(query: str | None, file: Path | None) -> str:
    if (query is None) == (file is None):
        fail("give a query or --file, one of them", Exit.USAGE)
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            fail(f"cannot read {file}: {error}", Exit.USAGE)
    return sys.stdin.read() if query == "-" else str(query)


def _print_bindings(result: dict[str, Any]) -> None:
    if "boolean" in result:
        OUT.print("yes" if result["boolean"] else "no")
        return
    columns = result["head"]["vars"]
    rows = result["results"]["bindings"]
    print_table(columns, ([row.get(name, {}).get("value", "") for name in columns] for row in rows))
    OUT.print(f"[dim]{len(rows)} rows[/]")
