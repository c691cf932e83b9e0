"""The gate: bars that a configuration must reach, so that a change that ranks worse does not pass unseen."""

import re
from collections.abc import Sequence

import msgspec

from ops.evaluation.measures import Measure, measure
from ops.evaluation.results import ALL, Figures, Results, Row
from pipeline.errors import InvalidConfiguration

_WRITTEN = re.compile(r"(?:(?P<kind>[^:=]+):)?(?P<measure>[^:=]+)=(?P<least>[0-9.]+)")


class Bar(msgspec.Struct, frozen=True):
    """A mean that must be reached."""

    measure: Measure
    least: float
    kind: str = ALL
    """Of a kind or a type of query only."""

    def __str__(self) -> str:
        return ("" if self.kind == ALL else f"{self.kind}: ") + str(self.measure)


def bar(text: str) -> Bar:
    """Read `ndcg@10=.80`, or `identifier:P@1=1` for one kind. Raises InvalidConfiguration."""
    found = _WRITTEN.fullmatch(text.strip())
    try:
        least = float(found["least"]) if found else -1.0
    except ValueError:
        least = -1.0
    if found is None or not 0 <= least <= 1:
        raise InvalidConfiguration(f"{text!r} is no bar: write measure=0..1, such as ndcg@10=.80 or identifier:P@1=1")
    return Bar(measure(found["measure"]), least, (found["kind"] or ALL).strip())


def missed(bars: Sequence[Bar], results: Results) -> list[str]:
    """Return a sentence for each bar that the baseline does not reach.

    Raises InvalidConfiguration when a bar names a kind that no question has: it would never be missed.
    """
    row = next(row for row in results.rows if row.name == results.baseline)
    return [said for each in bars if (said := _missed(each, row))]


def _missed(bar: Bar, row: Row) -> str:
    figures: dict[str, Figures] = {f.name: f for f in (*row.types, *row.kinds, row.whole)}
    if bar.kind not in figures:
        raise InvalidConfiguration(f"no question is of kind {bar.kind!r}; there are {', '.join(sorted(figures))}")
    found = figures[bar.kind].estimates[str(bar.measure)]
    if found.mean >= bar.least:
        return ""
    return f"{row.name}: {bar} is {found}, n = {found.n}, below the bar of {bar.least:g}"
