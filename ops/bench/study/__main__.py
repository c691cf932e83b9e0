"""Writes the table of configurations over several golden sets: `python -m ops.bench.study --help`.

Each set's rows are those of `shinsen eval --configurations`; this only puts their main figures side by side.
"""

import argparse
import asyncio
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ops.bench.study.kept import runs
from ops.evaluation.configurations import Configuration, read_configurations
from ops.evaluation.formats import Place, read_golden
from ops.evaluation.golden import GoldenSet, chosen
from ops.evaluation.measures import MAIN
from ops.evaluation.report import provenance, signed
from ops.evaluation.results import Judged, Results, Row, results
from ops.evaluation.running import Run, Target, run_all
from pipeline.logs import log_at

HERE = Path(__file__).parent
QUESTIONS = HERE.parent / "questions"
PLACE = Place("shared", "passages")
NOT_MEASURED = (
    "learned sparse (SPLADE-type encoder over HTTP)",
    "late interaction (ColBERT-type encoder over HTTP, MaxSim over the candidates)",
)
"""What the product has adapters for and no model is here for."""
SURE = 0.05


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One golden set with all its rows, by name."""

    title: str
    found: Results
    rows: dict[str, Row]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all sets and write the table."""
    options = _parser().parse_args(arguments)
    log_at("warning")
    started = time.perf_counter()
    columns = asyncio.run(_columns(options))
    said = provenance(sys.argv[1:], "")
    lines = [
        *_table(columns),
        "",
        f"Made by `{shlex.join(['python', '-m', 'ops.bench.study', *sys.argv[1:]])}` in"
        f" {(time.perf_counter() - started) / 60:.0f} minutes. {said.date}; {said.machine}; {said.libraries}.",
    ]
    options.output.write_text("\n".join([*_head(columns), *lines, ""]), encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.bench.study", description=__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="BEIR folder of the shared passages")
    parser.add_argument("--data", type=Path, required=True, help="data folder that holds them as shared/passages/…")
    parser.add_argument("--demo", type=Path, help="data folder that holds the demo corpus")
    parser.add_argument("--questions", type=int, help="of each set only so many")
    parser.add_argument("--configurations", type=Path, default=HERE / "shared.yaml")
    parser.add_argument("--kept", type=Path, help="folder where the engines' rankings are kept, and read when there")
    parser.add_argument("--output", type=Path, required=True)
    return parser


async def _columns(options: argparse.Namespace) -> list[Column]:
    """Run over the shared passages once for both sets of questions about them, and over the demo."""
    read = read_configurations(options.configurations)
    beir = read_golden(options.shared, PLACE)
    independent = read_golden(QUESTIONS / "shared.jsonl", PLACE, corpus=options.shared / "corpus.jsonl")
    columns = []
    for title, golden in (("JSQuAD valid", beir), ("independent", independent)):
        asked = chosen(golden, most=options.questions)
        ran = await _run(asked, read.configurations, Target(data=options.data, place=PLACE), options.kept)
        columns.append(_column(title, asked, ran, read.baseline))
        if golden is independent:
            left = chosen(asked, keep=lambda question: question.split == "held_out")
            columns.append(_column("its held-out half", left, _only(ran, asked, left), read.baseline))
    if options.demo:
        product = [each for each in read.configurations if not each.engine]
        target = Target(data=options.demo, groups=None)
        for title, name in (("demo, golden", HERE.parents[1] / "demo" / "golden.jsonl"), ("demo, independent", None)):
            golden = read_golden(name or QUESTIONS / "demo.jsonl", PLACE)
            columns.append(_column(title, golden, await _run(golden, product, target), read.baseline))
    return columns


async def _run(
    golden: GoldenSet, configurations: Sequence[Configuration], target: Target, kept: Path | None = None
) -> list[Run]:
    async def ask(some: Sequence[Configuration]) -> list[Run]:
        return (await run_all(golden, some, target, _tell)).runs

    return await runs(golden, configurations, ask, kept)


def _tell(name: str, done: int, total: int) -> None:
    if done == total:
        print(f"{time.strftime('%H:%M:%S')} {name}: {total} questions", file=sys.stderr, flush=True)


def _only(runs: Sequence[Run], golden: GoldenSet, half: GoldenSet) -> list[Run]:
    wanted = {question.id for question in half.questions}
    kept = [number for number, question in enumerate(golden.questions) if question.id in wanted]
    return [msgspec.structs.replace(run, rankings=[run.rankings[number] for number in kept]) for run in runs]


def _column(title: str, golden: GoldenSet, runs: Sequence[Run], baseline: str) -> Column:
    found = results(Judged(golden, (MAIN,)), runs, baseline)
    return Column(title=title, found=found, rows={row.name: row for row in found.rows})


def _head(columns: Sequence[Column]) -> list[str]:
    sizes = "; ".join(f"{each.title}: {each.found.questions} questions" for each in columns)
    return [
        "# Configurations of retrieval side by side",
        "",
        f"nDCG@10 ({sizes}). Below each value its difference to **{columns[0].found.baseline}** with the 95 % interval"
        " (bootstrap over groups of questions about the same documents) and * where a paired randomization test gives"
        f" p < {SURE} after Holm's correction for all rows of the column. The product answers `POST /v1/search`; its"
        " rows rank chunks, a document standing where its best chunk does. All other rows are the rankers of this"
        " folder over the same passages (title before text, whole), plain BM25 with k1 1.2 and b .75 unless said, the"
        " same encoder; see study/README.md. `learned` is fitted on the set itself, each question by other folds of"
        " pages. The product's shipped weights were fitted on all of these questions but the held-out halves of the"
        " independent ones; asked of each question by weights of other folds, reranking gives what"
        " schemas/ranking/default.yaml says under `held_out`.",
        "",
    ]


def _table(columns: Sequence[Column]) -> list[str]:
    names = dict.fromkeys(name for column in columns for name in column.rows)
    lines = [f"| configuration | {' | '.join(column.title for column in columns)} |"]
    lines.append("| --- |" + " --- |" * len(columns))
    lines += [f"| {name} | {' | '.join(_cell(column, name) for column in columns)} |" for name in names]
    lines += [f"| {name} | {' | '.join(['adapter only, not measured'] * len(columns))} |" for name in NOT_MEASURED]
    return lines


def _cell(column: Column, name: str) -> str:
    row = column.rows.get(name)
    if row is None:
        return "–"
    main = column.found.main
    value = f"{row.whole.estimates[main].mean:.4f}"
    if not row.against:
        return f"**{value}**"
    gap = row.against[main].difference
    sure = "*" if row.adjusted_p is not None and row.adjusted_p < SURE else ""
    return f"{value}<br>{signed(gap).replace(' (', f'{sure} (', 1)}"


if __name__ == "__main__":
    raise SystemExit(main())
