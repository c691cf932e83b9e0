"""doctor: what stands in the way, and what to do about it."""

from typing import Annotated

import msgspec
import typer
from rich.markup import escape

from ops.checkup import Finding, checkup
from ops.cli.exits import Exit, run_command
from ops.cli.logs import configure_logs
from ops.cli.options import Data, Json, settings_or_fail
from ops.cli.show import OUT, print_json
from ops.profile import with_remembered

_MARKS = {"ok": "[green]ok  [/]", "warning": "[yellow]warn[/]", "failure": "[red]FAIL[/]"}


def doctor(
    port: Annotated[int | None, typer.Option("--port", help="Port to look at. [default: 8000]")] = None,
    data: Data = None,
    models: Annotated[bool, typer.Option(help="Load the models and run each once.")] = True,
    as_json: Json = False,
) -> None:
    """Check Python, packages, data folder, port, mappings, models and indexes; exit code 1 when one of them fails."""
    settings = with_remembered(settings_or_fail(port=port, data=data))
    configure_logs(settings, quiet=True)
    findings: list[Finding] = []

    async def work() -> None:
        async for finding in checkup(settings, models=models):
            findings.append(finding)
            if not as_json:
                _print(finding)

    run_command(work())
    if as_json:
        print_json([msgspec.to_builtins(finding) for finding in findings])
    if any(finding.state == "failure" for finding in findings):
        raise typer.Exit(Exit.FAILED)


def _print(finding: Finding) -> None:
    OUT.print(f"{_MARKS[finding.state]} [bold]{escape(finding.name)}[/]: {escape(finding.found)}", soft_wrap=True)
    if finding.todo:
        OUT.print(f"     → {escape(finding.todo)}", soft_wrap=True)
