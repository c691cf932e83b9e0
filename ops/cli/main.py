"""The command `shinsen`."""

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from ops.cli import analyze, doctor, evaluate, operations, publish, questions, run, schema, tune
from ops.cli.dead_letters import letters
from ops.cli.exits import EXIT_CODES
from ops.cli.generations import compare, generations, promote, prune, rollback
from ops.cli.logs import configure_logs
from ops.cli.options import settings_or_fail
from ops.cli.replaying import replay
from ops.cli.sources import sources

app = typer.Typer(
    name="shinsen",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            print(f"shinsen {version('shinsen')}")
        except PackageNotFoundError:
            print("shinsen (not installed, run from its folder)")
        raise typer.Exit


@app.callback()
def shinsen(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Change events in; Japanese hybrid and graph indexes; routed, cited answers out.

    Commands talk to the server that runs over the data folder, or to --url; without a server they open the folder.
    """
    configure_logs(settings_or_fail(), quiet=True)


app.command()(run.run)
app.command()(publish.publish)
app.command()(questions.ask)
app.command()(questions.search)
app.command()(questions.sparql)
app.command()(operations.status)
app.command()(operations.digest)
for command in (replay, generations, compare, promote, rollback, prune):
    app.command()(command)
app.add_typer(letters, name="dlq")
app.add_typer(sources, name="source")
app.command()(doctor.doctor)
app.command()(schema.schema)
app.command()(analyze.analyze)
app.command(name="eval")(evaluate.evaluate)
app.command("tune")(tune.tune_weights)

if __name__ == "__main__":
    app()
