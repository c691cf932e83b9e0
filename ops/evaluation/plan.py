"""A whole evaluation: read, load, run, measure, report, hold to the bar."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ops.evaluation.configurations import ONE, read_configurations
from ops.evaluation.formats import Format, Place, read_golden
from ops.evaluation.gate import bar, missed
from ops.evaluation.golden import GoldenSet, chosen
from ops.evaluation.loading import written_at
from ops.evaluation.measures import DEFAULT, measure
from ops.evaluation.report import provenance
from ops.evaluation.report import report as laid_out
from ops.evaluation.results import Judged, Results, results
from ops.evaluation.running import Target, Tell, run_all
from ops.evaluation.writing import html, markdown
from pipeline.errors import InvalidConfiguration


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `shinsen eval`."""

    golden: Path
    written: Format | None
    topics: Path | None
    corpus: Path | None
    split: str | None
    source: str
    collection: str
    questions: int | None
    load: bool
    timeout: float
    configurations: Path | None
    baseline: str | None
    folder: Path
    measures: list[str] | None
    relevant_from: int
    bars: list[str] | None
    report: Path | None
    texts: bool
    top_k: int
    at_once: int
    seed: int
    groups: str | None
    url: str | None
    data: Path | None
    as_json: bool

    def target(self, golden: GoldenSet) -> Target:
        """Return what is asked, and how."""
        return Target(
            url=self.url,
            data=self.data,
            groups=self.groups,
            place=Place(self.source, self.collection),
            load=self.load,
            written_at=written_at(self.corpus or self.golden) if golden.passages else "",
            load_timeout_s=self.timeout,
            folder=self.folder,
            top_k=self.top_k,
            at_once=self.at_once,
        )


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    results: Results
    missed: list[str]
    """A sentence for each bar that was not reached, and for each report that could not be written."""
    files: list[Path]
    """Reports written."""


async def evaluate(plan: Plan, arguments: Sequence[str], tell: Tell) -> Verdict:
    """Do all of it; what is wrong with the options is said before the first question.

    Raises InvalidConfiguration (with file and line), and what the profile raises.
    """
    bars = [bar(text) for text in plan.bars or ()]
    wanted = [measure(text) for text in plan.measures] if plan.measures else [*DEFAULT]
    measures = tuple(dict.fromkeys([*wanted, *(each.measure for each in bars)]))
    golden = _golden(plan)
    compared = read_configurations(plan.configurations, plan.baseline) if plan.configurations else ONE
    if plan.baseline and not plan.configurations:
        raise InvalidConfiguration("--baseline names one of several configurations: give their file, too")
    for file in _report_files(plan):
        _writable(file)
    target = plan.target(golden)
    outcome = await run_all(golden, compared.configurations, target, tell)
    judged = Judged(golden, measures, plan.relevant_from, plan.seed)
    found = results(judged, outcome.runs, compared.baseline, outcome.notes)
    source = provenance(arguments, f"{plan.top_k} passages asked for, {plan.at_once} questions at a time.")
    files, failed = _report_files(plan), []
    blocks = laid_out(found, source, texts=plan.texts)
    for file, content in zip(files, (markdown(blocks), html(blocks)), strict=False):
        try:
            file.write_text(content, encoding="utf-8")
        except OSError as error:  # the figures took long: they are shown all the same
            failed.append(f"{file} could not be written: {error.strerror or error}")
    return Verdict(results=found, missed=[*missed(bars, found), *failed], files=files if not failed else [])


def _golden(plan: Plan) -> GoldenSet:
    golden = read_golden(
        plan.golden,
        Place(plan.source, plan.collection),
        form=plan.written,
        topics=plan.topics,
        corpus=plan.corpus,
        split=plan.split,
    )
    golden = chosen(golden, most=plan.questions)
    if not golden.questions:
        raise InvalidConfiguration(f"{plan.golden}: no question has a relevant document")
    return golden


def _report_files(plan: Plan) -> list[Path]:
    """Return NAME.md and NAME.html, or nothing when no report is wanted. Absolute: the folder may go away meanwhile."""
    if plan.report is None:
        return []
    path = plan.report.absolute()
    known = path.suffix.lower() in (".md", ".html")
    return [path.with_suffix(end) if known else path.with_name(path.name + end) for end in (".md", ".html")]


def _writable(file: Path) -> None:
    """Refuse before the questions are asked, not after. Raises InvalidConfiguration."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        there = file.exists()
        file.open("ab").close()
        if not there:
            file.unlink()
    except OSError as error:
        raise InvalidConfiguration(f"{file} cannot be written: {error.strerror or error}") from error
