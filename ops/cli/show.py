"""How answers, hits and tables look on a terminal; `--json` prints what the API answered."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 200
"""Columns where no terminal says how wide it is: a program's log should keep ids whole."""
OUT = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
EXCERPT = 90


def print_json(value: Any) -> None:
    """Print JSON with real characters, for programs: no colour, no wrapping."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Print rows; every cell is plain text."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        # Ids and names stand first: they are copied, so they are never cut.
        table.add_column(name, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    OUT.print(table)


def print_answer(response: Mapping[str, Any]) -> None:
    """Print an answer with its citations, paths, route and freshness."""
    answer, route = response["answer"], response["route"]
    OUT.print(f"[bold]Q[/] {escape(response['question'])}")
    for claim in answer["claims"]:
        marks = "".join(f"[{n}]" for n in claim["citations"])
        OUT.print(f"[bold green]A[/] {escape(claim['text'])} [cyan]{escape(marks)}[/]")
    if not answer["claims"]:
        OUT.print(f"[bold yellow]A[/] {escape(answer['text'])}")
    OUT.print(
        f"[dim]route {escape(route['strategy'])} by {escape(route['by'])}: {escape(route['reason'])}; "
        f"{response['timings_ms'].get('total', 0):.0f} ms[/]"
    )
    for warning in response.get("warnings", []):
        OUT.print(f"[yellow]warning:[/] {escape(warning)}")
    print_evidence(response["evidence"])
    print_freshness(response["freshness"])


def print_evidence(evidence: Sequence[Mapping[str, Any]]) -> None:
    """Print each piece with where it stands and how it was reached."""
    if evidence:
        OUT.print("\n[bold]Evidence[/]")
    for piece in evidence:
        document = piece["document"]
        span = "" if piece["span"] is None else f" {piece['span'][0]}-{piece['span'][1]}"
        OUT.print(
            f"[cyan]\\[{piece['n']}][/] [bold]{escape(document['key'])}[/]{span} {escape(document['title'])} "
            f"[dim]version {escape(str(document['version']))}, {escape('+'.join(piece['sources']))}, "
            f"{escape(piece.get('stage', 'full'))}[/]"
        )
        OUT.print(Text(f"    {excerpt(piece['text'])}"))
        if piece.get("path"):
            OUT.print(f"    [magenta]{escape(path_chain(piece['path']))}[/]")


def path_chain(path: Sequence[Mapping[str, Any]]) -> str:
    """Return a path as a chain: `F-17 ─is_a→ フォークリフト ←applies_to─ SM-210`."""
    chain = ""
    for step in path:
        near, far = step["subject"], step["object"]
        arrow = f"─{step['predicate']}→"
        if step["direction"] == "in":
            near, far, arrow = far, near, f"←{step['predicate']}─"
        chain = f"{chain or near} {arrow} {far}"
    return chain


def print_freshness(freshness: Mapping[str, Any]) -> None:
    """Print how far each store is."""
    stores = ", ".join(f"{store} {freshness[store]}" for store in ("records", "text", "chunks", "graph"))
    OUT.print(f"\n[bold]Freshness[/] {escape(stores)}; {freshness['pending']} documents pending")


def print_hits(response: Mapping[str, Any]) -> None:
    """Print search hits, best first."""
    for rank, hit in enumerate(response["hits"], start=1):
        parts = hit["parts"]
        found = ", ".join(
            [f"{name} {parts[name]}" for name in ("bm25", "dense") if parts.get(name)]
            + (["identifier"] if parts.get("exact_identifier") else [])
            + (["identifier of the document"] if parts.get("named_identifier") else [])
        )
        OUT.print(
            f"[cyan]{rank:>2}[/] [bold]{escape(hit['document']['key'])}[/] {escape(hit['document']['title'])} "
            f"[dim]{hit['score']:.3f} ({escape(found)}) {escape(hit.get('stage', 'full'))}[/]"
        )
        OUT.print(Text(f"   {excerpt(hit['text'])}"))
    OUT.print(f"[dim]{response['total']} found, query type {escape(str(response['query_type']))}[/]")
    for warning in response.get("warnings", []):
        OUT.print(f"[yellow]warning:[/] {escape(warning)}")


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"
