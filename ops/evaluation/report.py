"""The report: one list of blocks, written as Markdown and as one HTML file that needs nothing from anywhere."""

import platform
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import msgspec

from ops.bench.report import machine
from ops.evaluation.plots import Interval, intervals
from ops.evaluation.results import Miss, Results, Row
from ops.evaluation.statistics import LEVEL, RESAMPLES, Comparison, Estimate

_LIBRARIES = ("shinsen", "ir-measures", "pytrec-eval-terrier", "scipy", "numpy")


class Heading(msgspec.Struct, frozen=True):
    """A title; level 1 is the report's."""

    level: int
    text: str


class Text(msgspec.Struct, frozen=True):
    """A paragraph of plain text."""

    text: str


class Grid(msgspec.Struct, frozen=True):
    """A table of plain cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Plot(msgspec.Struct, frozen=True):
    """A picture, and the words for those who cannot see it. Markdown leaves it out: the tables hold its numbers."""

    svg: str
    caption: str


Block = Heading | Text | Grid | Plot


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where figures come from: without it they cannot be had again."""

    command: str
    date: str
    machine: str
    """With commit, Python, processor and load."""
    libraries: str
    target: str
    """How many passages are asked for, and how many questions at a time."""


def provenance(arguments: Sequence[str], target: str) -> Provenance:
    """Note down this run."""
    return Provenance(
        command=shlex.join(("shinsen", "eval", *arguments)),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=f"{machine()}; {platform.system()}",
        libraries=", ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
        target=target,
    )


def report(results: Results, source: Provenance, *, texts: bool) -> list[Block]:
    """Lay a report out; `texts`: with the words of the worst questions, which a licence may forbid to pass on."""
    one = len(results.rows) == 1
    blocks: list[Block] = [
        Heading(1, f"Retrieval on {results.golden}"),
        Text(_about(results)),
        *(Text(f"Note: {note}.") for note in results.notes),
        Heading(2, "Figures"),
        Grid(("configuration", *results.measures), tuple(_figures_row(row) for row in results.rows)),
        _plot_rows(results),
    ]
    if not one:
        blocks += _against(results)
    blocks += _split(results, "kind of question", "kinds")
    blocks += _split(results, "type that the product gave", "types")
    blocks += [Heading(2, "Time"), Text(source.target), _times(results)]
    blocks += _warnings(results)
    blocks += _worst(results, texts=texts)
    blocks += [
        Heading(2, "Method"),
        *map(Text, _method(results)),
        Heading(2, "Provenance"),
        _provenance(results, source),
    ]
    return blocks


def p_value(p: float | None) -> str:
    """Write a p; what lies at the smallest possible one is said as a bound."""
    if p is None:
        return "–"
    least = 2 / (RESAMPLES + 1)
    return f"≤ {least:.4f}" if p <= least else f"{p:.4f}"


def signed(found: Estimate) -> str:
    """Write a difference with its interval."""
    bounds = [bound for bound in (found.low, found.high) if bound is not None]
    mean, *around = (f"{round(value, 4) + 0.0:+.4f}" for value in (found.mean, *bounds))  # no "-0.0000"
    return f"{mean} ({' to '.join(around)})" if around else mean


def _about(results: Results) -> str:
    corpus = f", {results.passages} passages come with the set" if results.passages else ""
    return (
        f"n = {results.questions} questions in {results.groups} groups about the same documents{corpus}; "
        f"set {results.fingerprint}; figures are means with {LEVEL:.0%} intervals; seed {results.seed}."
    )


def _figures_row(row: Row) -> tuple[str, ...]:
    return row.name, *(str(found) for found in row.whole.estimates.values())


def _plot_rows(results: Results) -> Plot:
    marks = [_interval(row.name, row.whole.estimates[results.main]) for row in results.rows]
    return Plot(intervals(marks, results.main), f"{results.main} by configuration, n = {results.questions}")


def _interval(name: str, found: Estimate) -> Interval:
    return Interval(name, found.mean, found.low, found.high, f"n = {found.n}")


def _against(results: Results) -> Iterator[Block]:
    others = [row for row in results.rows if row.against]
    main = results.main
    yield Heading(2, f"Against {results.baseline}")
    yield Grid(
        ("configuration", f"difference of {main}", "p", "p (Holm)", "better", "worse", "equal"),
        tuple(_test_row(row, row.against[main]) for row in others),
    )
    marks = [_interval(row.name, row.against[main].difference) for row in others]
    yield Plot(intervals(marks, f"difference of {main}", zero=True), f"Difference of {main} from {results.baseline}")
    rest = [name for name in results.measures if name != main]
    yield Text("Differences of the other measures, with p that are not adjusted:")
    yield Grid(
        ("configuration", *rest),
        tuple(
            (row.name, *(f"{signed(row.against[m].difference)}, p {p_value(row.against[m].p)}" for m in rest))
            for row in others
        ),
    )


def _test_row(row: Row, test: Comparison) -> tuple[str, ...]:
    equal = test.difference.n - test.better - test.worse
    adjusted = p_value(row.adjusted_p)
    return row.name, signed(test.difference), p_value(test.p), adjusted, str(test.better), str(test.worse), str(equal)


def _split(results: Results, what: str, member: str) -> Iterator[Block]:
    """By kind or type: every measure for the baseline, the main one for all."""
    first = next(row for row in results.rows if row.name == results.baseline)
    parts = getattr(first, member)
    if not parts:
        return
    yield Heading(2, f"By {what}")
    yield Text(f"{results.baseline}:")
    yield Grid(
        (what, "n", *results.measures),
        tuple((p.name, str(_n(p.estimates)), *(str(e) for e in p.estimates.values())) for p in parts),
    )
    marks = [_interval(part.name, part.estimates[results.main]) for part in parts]
    yield Plot(intervals(marks, results.main), f"{results.main} of {results.baseline} by {what}")
    rows = [(row.name, {p.name: p for p in getattr(row, member)}) for row in results.rows if getattr(row, member)]
    if len(rows) > 1:
        names = [part.name for part in parts]
        yield Text(f"{results.main} of every configuration (the number of questions where it is not the same):")
        yield Grid(
            ("configuration", *names),
            tuple((name, *_cells(found, names, results, first, member)) for name, found in rows),
        )


def _cells(found: dict[str, object], names: Iterable[str], results: Results, first: Row, member: str) -> Iterator[str]:
    usual = {part.name: _n(part.estimates) for part in getattr(first, member)}
    for name in names:
        part = found.get(name)
        if part is None:
            yield "–"
            continue
        estimate: Estimate = part.estimates[results.main]  # type: ignore[attr-defined]
        yield str(estimate) + ("" if estimate.n == usual[name] else f", n = {estimate.n}")


def _n(estimates: dict[str, Estimate]) -> int:
    return next(iter(estimates.values())).n


def _times(results: Results) -> Grid:
    return Grid(
        ("configuration", "all questions", "questions a second", "one question, median", "95th percentile"),
        tuple(
            (
                row.name,
                f"{row.seconds:.1f} s",
                f"{results.questions / row.seconds:.1f}" if row.seconds else "–",
                f"{row.latencies[0] * 1000:.1f} ms",
                f"{row.latencies[1] * 1000:.1f} ms",
            )
            for row in results.rows
        ),
    )


def _warnings(results: Results) -> Iterator[Block]:
    said = [(row.name, warning, str(number)) for row in results.rows for warning, number in row.warnings.items()]
    if said:
        yield Heading(2, "Warnings of the searches")
        yield Grid(("configuration", "warning", "questions"), tuple(said))


def _worst(results: Results, *, texts: bool) -> Iterator[Block]:
    first = next(row for row in results.rows if row.name == results.baseline)
    if first.worst:
        yield Heading(2, "Worst questions")
        yield Text(f"{results.baseline}, the {len(first.worst)} lowest by {results.main}:")
        yield _misses(first.worst, results.main, texts=texts)
    for row in results.rows:
        if row.lost:
            yield Text(f"{row.name}, furthest below {results.baseline}:")
            yield _misses(row.lost, results.main, texts=texts, before=results.baseline)


def _misses(misses: Sequence[Miss], main: str, *, texts: bool, before: str = "") -> Grid:
    columns = ("id", "kind", main, *((before,) if before else ()), "first relevant", *(("question",) if texts else ()))
    return Grid(
        columns,
        tuple(
            (
                miss.id,
                miss.kind,
                f"{miss.value:.4f}",
                *((f"{miss.baseline:.4f}",) if before else ()),
                "not found" if miss.rank is None else str(miss.rank),
                *((miss.question,) if texts else ()),
            )
            for miss in misses
        ),
    )


def _method(results: Results) -> Iterator[str]:
    yield (
        "Measures: trec_eval through ir-measures, over documents (a document stands where its best passage does). "
        "nDCG takes 2^grade − 1 as gain and log2(rank + 1) as discount; for the other measures a document is relevant "
        f"from grade {results.relevant_from} on; MRR and MAP look at all documents of the passages asked for."
    )
    yield (
        f"Intervals: percentile bootstrap, {RESAMPLES} resamples (Efron and Tibshirani 1993), questions about the same "
        "documents drawn together. Tests: paired randomization of the same groups, two-sided (Smucker, Allan and "
        "Carterette, CIKM 2007), adjusted over the configurations by Holm (1979). Intervals speak of other questions "
        "of this kind about this corpus, and of nothing else."
    )


def _provenance(results: Results, source: Provenance) -> Grid:
    rows = [("command", source.command), ("date", source.date), ("machine", source.machine)]
    rows += [("libraries", source.libraries), ("seed", str(results.seed))]
    profiles: dict[str, list[str]] = {}
    for row in results.rows:
        if row.profile:
            profiles.setdefault("; ".join(f"{k} {v}" for k, v in sorted(row.profile.items())), []).append(row.name)
    rows += [(f"built with ({', '.join(names)})", built) for built, names in profiles.items()]
    return Grid(("what", "value"), tuple(rows))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
