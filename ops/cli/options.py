"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ops.cli.exits import Exit, fail
from ops.profile import read_settings
from pipeline.errors import InvalidConfiguration
from pipeline.settings import Settings

Url = Annotated[
    str | None, typer.Option("--url", help="Address of a running server; otherwise the data folder says where.")
]
Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data folder of the embedded profile. [env: SHINSEN_DATA, default: .shinsen]"),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")]
Groups = Annotated[
    str | None, typer.Option("--groups", help="Ask as a member of these groups, comma-separated; * sees everything.")
]
MinFreshness = Annotated[
    str | None, typer.Option("--min-freshness", help="Freshness token: wait until its events are in the indexes.")
]
Wait = Annotated[str, typer.Option("--wait", help="How long to wait for --min-freshness (500ms, 5s, 1m).")]

Source = Annotated[str, typer.Option("--source", help="Source of documents that a golden set names by id only.")]
Collection = Annotated[str, typer.Option("--collection", help="Their collection.")]


def settings_or_fail(**given: Any) -> Settings:
    """Read the settings, or say what is wrong with them."""
    try:
        return read_settings(**given)
    except InvalidConfiguration as error:
        fail(str(error), Exit.USAGE)


def check_place(url: str | None, data: Path | None) -> None:
    """Refuse two places at once."""
    if url is not None and data is not None:
        fail("give --url or --data, not both", Exit.USAGE)


def positive(value: float, name: str) -> float:
    """Refuse times and numbers that are not above zero."""
    if value <= 0:
        fail(f"{name} must be above 0", Exit.USAGE)
    return value
