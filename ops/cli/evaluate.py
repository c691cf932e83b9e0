"""eval: a golden set against a profile, configurations against each other, a bar to reach."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ops.cli.exits import Exit, fail, run_command
from ops.cli.options import Collection, Data, Groups, Json, Source, Url, check_place, positive
from ops.cli.show import OUT, print_json, print_table
from ops.evaluation.formats import Format
from ops.evaluation.golden import SEED
from ops.evaluation.ranking import AT_ONCE, TOP_K

if TYPE_CHECKING:
    from ops.evaluation.plan import Plan
    from ops.evaluation.results import Figures, Results
    from ops.evaluation.running import Tell

Golden = Annotated[
    Path, typer.Argument(help="Our JSON lines, a BEIR folder, TREC qrels (with --topics), or SQuAD-style JSON.")
]
Written = Annotated[Format | None, typer.Option("--format", help="By the name when left out.")]
Topics = Annotated[Path | None, typer.Option("--topics", help="The questions of TREC qrels.")]
Corpus = Annotated[Path | None, typer.Option("--corpus", help="Passages beside it: JSON lines of _id, title, text.")]
Split = Annotated[str | None, typer.Option("--split", help="Only this split of the questions.")]
Most = Annotated[int | None, typer.Option("--questions", min=1, help="Only so many, always the same ones.")]
Load = Annotated[bool, typer.Option("--load", help="Publish the set's corpus first, and wait until it is applied.")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds that the last of --load may take.")]
File = Annotated[Path | None, typer.Option("--configurations", help="Configurations to compare: YAML or JSON.")]
Baseline = Annotated[str | None, typer.Option("--baseline", help="The configuration that others are tested against.")]
Folder = Annotated[Path, typer.Option("--folder", help="Indexes of configurations with settings of their own.")]
Measures = Annotated[list[str] | None, typer.Option("--measure", help="nDCG@k, recall@k, P@k, MRR, MAP; repeatable.")]
From = Annotated[int, typer.Option("--relevant-from", min=1, max=10, help="The lowest grade that is relevant.")]
Bars = Annotated[list[str] | None, typer.Option("--bar", help="ndcg@10=.80, or KIND:P@1=1; exit code 1 below it.")]
Out = Annotated[Path | None, typer.Option("--report", help="Write NAME.md and NAME.html.")]
Texts = Annotated[bool, typer.Option("--texts", help="With the words of the worst questions in the report.")]
TopK = Annotated[int, typer.Option("--top-k", min=10, max=100, help="Passages asked for.")]
AtOnce = Annotated[int, typer.Option("--at-once", min=1, max=32, help="Questions under way at a time.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of intervals and tests.")]


def evaluate(
    golden: Golden,
    written: Written = None,
    topics: Topics = None,
    corpus: Corpus = None,
    split: Split = None,
    source: Source = "eval",
    collection: Collection = "passages",
    questions: Most = None,
    load: Load = False,
    timeout: Timeout = 3600.0,
    configurations: File = None,
    baseline: Baseline = None,
    folder: Folder = Path(".shinsen-eval"),
    measures: Measures = None,
    relevant_from: From = 1,
    bars: Bars = None,
    report: Out = None,
    texts: Texts = False,
    top_k: TopK = TOP_K,
    at_once: AtOnce = AT_ONCE,
    seed: Seed = SEED,
    groups: Groups = None,
    url: Url = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Measure retrieval on a golden set through POST /v1/search: nDCG, MRR, MAP, recall, with intervals and tests."""
    options = dict(locals())  # the plan has a member for each option
    check_place(url, data)
    positive(timeout, "--timeout")
    if find_spec("ir_measures") is None or find_spec("scipy") is None:
        fail("measures need the extra `eval`: pip install 'shinsen[eval]' (`make dev` installs it)", Exit.USAGE)
    from ops.evaluation.plan import Plan

    _run(Plan(**options))


def _run(plan: "Plan") -> None:
    # Only now: numpy and scipy take a second to import, which other commands need not pay.
    from ops.evaluation.plan import evaluate as work

    with _progress() as tell:
        verdict = run_command(work(plan, _arguments(), tell))
    if plan.as_json:
        print_json(msgspec.to_builtins(verdict, enc_hook=str))
    else:
        _print(verdict.results)
        for file in verdict.files:
            OUT.print(f"written: {file}", soft_wrap=True)
    if verdict.missed:
        fail("; ".join(verdict.missed))


def _arguments() -> list[str]:
    """Return what stands after `eval` on the command line, for the report."""
    return sys.argv[sys.argv.index("eval") + 1 :] if "eval" in sys.argv else []


@contextmanager
def _progress() -> "Iterator[Tell]":
    """Show a bar for each configuration, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as progress:
        bars: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=total)
            progress.update(bars[name], completed=done)

        yield tell


def _print(results: "Results") -> None:
    from ops.evaluation.report import p_value, signed

    for note in results.notes:
        OUT.print(f"[dim]{note}[/]", soft_wrap=True)
    others = [name for name in results.measures if name != results.main]
    first = next(row for row in results.rows if row.name == results.baseline)
    titles = (f"{results.main} (95 %)", *others)

    def cells(found: "Figures") -> list[str]:
        return [str(found.estimates[results.main]), *(f"{found.estimates[name].mean:.4f}" for name in others)]

    print_table(
        ("configuration", "n", *titles, "s"),
        [(row.name, results.questions, *cells(row.whole), f"{row.seconds:.1f}") for row in results.rows],
    )
    for what, parts in (("kind", first.kinds), ("type", first.types)):
        if parts:
            OUT.print()
            rows = [(part.name, part.estimates[results.main].n, *cells(part)) for part in parts]
            print_table((what, "n", *titles), rows)
    tested = [(row.name, row.against[results.main], row.adjusted_p) for row in results.rows if row.against]
    if tested:
        OUT.print()
        rows = [
            (
                name,
                signed(test.difference),
                p_value(test.p),
                p_value(p),
                test.better,
                test.worse,
            )
            for name, test, p in tested
        ]
        print_table((f"against {first.name}", results.main, "p", "p (Holm)", "better", "worse"), rows)
