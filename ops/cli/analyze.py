"""analyze: what becomes of a text on its way into the index, and of a question on its way to it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ops.cli.exits import Exit, fail
from ops.cli.options import Data, Json, settings_or_fail
from ops.cli.show import OUT, print_json, print_table
from ops.profile import with_remembered
from pipeline.errors import InvalidConfiguration
from pipeline.text.stages import stages
from pipeline.wiring import Configuration


def analyze(
    text: Annotated[str, typer.Argument(help="A text or a question; - reads standard input.")],
    data: Data = None,
    dictionary: Annotated[
        Path | None, typer.Option("--dictionary", help="CSV file of your own words. [env: SHINSEN_DICTIONARY]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show each stage of the lexical analysis: normalized, identifiers, values, morphemes, terms, bigrams, question."""
    settings = with_remembered(settings_or_fail(data=data, dictionary=dictionary))
    given = sys.stdin.read() if text == "-" else text
    try:
        found = stages(Configuration(settings).lexicon.analyzer(), given)
    except InvalidConfiguration as error:
        fail(str(error), Exit.USAGE)
    if as_json:
        print_json(found)
    else:
        _print(found)


def _print(found: Mapping[str, Any]) -> None:
    _line("normalized", found["normalized"])
    _table("identifiers", ("identifier", "kind", "span"), found["identifiers"], ("text", "kind", "span"))
    _table("values", ("value", "kind", "part of", "span"), found["values"], ("text", "kind", "wider", "span"))
    columns = ("surface", "part of speech", "normalized", "known by", "indexed as")
    keys = ("surface", "part_of_speech", "normalized", "known", "indexed")
    _table("morphemes (identifiers are taken out before)", columns, found["morphemes"], keys)
    _line("terms", "  ".join(term["text"] for term in found["terms"]))
    _line("bigrams", " ".join(found["bigrams"]))
    question = found["question"]
    _line("as a question", "  ".join(question["terms"]))
    _line("synonyms", "  ".join(f"{s['text']} ({s['weight']:g})" for s in question["synonyms"]))
    _line("unknown words", "  ".join(question["unknown_words"]))


def _line(name: str, text: str) -> None:
    OUT.print(f"[bold]{name}[/]")
    OUT.print(f"  {text or '(none)'}", markup=False, soft_wrap=True)


def _table(name: str, columns: tuple[str, ...], rows: list[Mapping[str, Any]], keys: tuple[str, ...]) -> None:
    if rows:
        print_table(columns, ([_cell(row[key]) for key in keys] for row in rows), title=name)
    else:
        _line(name, "")


def _cell(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return "-".join(map(str, value)) if value and isinstance(value[0], int) else ", ".join(value)
