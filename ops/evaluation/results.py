"""What the runs come to: figures with intervals, by kind and type, paired tests, the questions that went worst."""

from collections.abc import Sequence

import msgspec
import numpy as np

from ops.evaluation.golden import SEED, GoldenQuestion, GoldenSet
from ops.evaluation.measures import MAIN, Measure, Table, measured
from ops.evaluation.ranking import Ranking
from ops.evaluation.running import Run
from ops.evaluation.statistics import Comparison, Estimate, Groups, compared, estimates, grouped, holm

ALL = "all"
WORST = 20


class Figures(msgspec.Struct, frozen=True):
    """The measures over some questions."""

    name: str
    """`all`, a kind, or a type of query."""
    estimates: dict[str, Estimate]
    """By measure."""


class Miss(msgspec.Struct, frozen=True, kw_only=True):
    """A question that went badly, or worse than with the baseline."""

    id: str
    kind: str
    question: str
    value: float
    """Of the main measure."""
    baseline: float
    rank: int | None
    """Of the first relevant document, from 1; None when it is not in the ranking."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration."""

    name: str
    whole: Figures
    kinds: list[Figures]
    """By the kind that the set gives."""
    types: list[Figures]
    """By the type that the product gave."""
    against: dict[str, Comparison]
    """By measure, against the baseline; empty for the baseline."""
    adjusted_p: float | None
    """Of the main measure, for as many tests as there are configurations (Holm)."""
    worst: list[Miss]
    lost: list[Miss]
    """Where it is furthest below the baseline."""
    seconds: float
    latencies: tuple[float, float]
    """Median and 95th percentile of one question, in seconds, while several are under way."""
    warnings: dict[str, int]
    """Of the searches, with how many had it."""
    profile: dict[str, str]


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All configurations over one set."""

    golden: str
    fingerprint: str
    questions: int
    groups: int
    passages: int
    notes: tuple[str, ...]
    measures: list[str]
    main: str
    relevant_from: int
    seed: int
    baseline: str
    rows: list[Row]


class Judged(msgspec.Struct, frozen=True):
    """The questions, and what they are measured with."""

    golden: GoldenSet
    measures: tuple[Measure, ...]
    relevant_from: int = 1
    seed: int = SEED

    @property
    def main(self) -> int:
        """The column that decides: nDCG@10 where it is measured, else the first."""
        return self.measures.index(MAIN) if MAIN in self.measures else 0


def results(judged: Judged, runs: Sequence[Run], baseline: str, notes: Sequence[str] = ()) -> Results:
    """Measure all runs and compare each with the baseline."""
    golden = judged.golden
    groups = grouped(golden.questions)
    tables = {run.configuration.name: _table(judged, run) for run in runs}
    rows = [_row(judged, run, tables[run.configuration.name], tables[baseline], groups, baseline) for run in runs]
    main = str(judged.measures[judged.main])
    tested = [row.against[main].p if row.against else None for row in rows]
    adjusted = holm(tested)
    return Results(
        golden=golden.name,
        fingerprint=golden.fingerprint(),
        questions=len(golden.questions),
        groups=len(np.unique(groups)),
        passages=len(golden.passages),
        notes=(*golden.notes, *notes),
        measures=[str(measure) for measure in judged.measures],
        main=main,
        relevant_from=judged.relevant_from,
        seed=judged.seed,
        baseline=baseline,
        rows=[msgspec.structs.replace(row, adjusted_p=p) for row, p in zip(rows, adjusted, strict=True)],
    )


def _table(judged: Judged, run: Run) -> Table:
    rankings = [ranking.documents for ranking in run.rankings]
    return measured(judged.golden.questions, rankings, judged.measures, judged.relevant_from)


def _row(judged: Judged, run: Run, table: Table, other: Table, groups: Groups, baseline: str) -> Row:
    names = [str(measure) for measure in judged.measures]
    questions, main = judged.golden.questions, judged.main
    is_baseline = run.configuration.name == baseline
    against = (
        {}
        if is_baseline
        else {
            name: compared(table[:, column], other[:, column], groups, judged.seed) for column, name in enumerate(names)
        }
    )
    values, before = table[:, main], other[:, main]
    seconds = [ranking.seconds for ranking in run.rankings]
    warnings: dict[str, int] = {}
    for ranking in run.rankings:
        for warning in set(ranking.warnings):
            warnings[warning] = warnings.get(warning, 0) + 1

    def misses(order: Sequence[int]) -> list[Miss]:
        return [_miss(judged, questions[n], run.rankings[n], values[n], before[n]) for n in order]

    return Row(
        name=run.configuration.name,
        whole=_figures(ALL, names, table, groups, judged.seed),
        kinds=_by([q.kind for q in questions], names, table, groups, judged.seed),
        types=_by([ranking.query_type for ranking in run.rankings], names, table, groups, judged.seed),
        against=against,
        adjusted_p=None,
        worst=misses([n for n in np.argsort(values, kind="stable").tolist() if values[n] < 1][:WORST]),
        lost=misses([n for n in np.argsort(values - before, kind="stable").tolist() if values[n] < before[n]][:WORST]),
        seconds=run.seconds,
        latencies=(float(np.quantile(seconds, 0.5)), float(np.quantile(seconds, 0.95))),
        warnings=warnings,
        profile=run.profile,
    )


def _figures(name: str, names: Sequence[str], table: Table, groups: Groups, seed: int) -> Figures:
    return Figures(name, dict(zip(names, estimates(table, groups, seed), strict=True)))


def _by(labels: Sequence[str], names: Sequence[str], table: Table, groups: Groups, seed: int) -> list[Figures]:
    """Split by label; nothing when there is only one."""
    known = sorted(set(labels))
    if len(known) < 2:
        return []
    found = []
    for label in known:
        chosen = np.array([each == label for each in labels])
        found.append(_figures(label or "(none)", names, table[chosen], groups[chosen], seed))
    return found


def _miss(judged: Judged, question: GoldenQuestion, ranking: Ranking, value: float, before: float) -> Miss:
    grades = question.relevant
    at = (n for n, key in enumerate(ranking.documents, start=1) if grades.get(key, 0) >= judged.relevant_from)
    return Miss(
        id=question.id,
        kind=question.kind or ranking.query_type,
        question=question.question,
        value=float(value),
        baseline=float(before),
        rank=next(at, None),
    )
