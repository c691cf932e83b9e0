"""Interval plots as SVG, small enough to be read in the file: a point, its interval, a line for zero."""

import math
from collections.abc import Callable, Sequence
from html import escape

import msgspec

_LABEL, _PLOT, _NOTE, _ROW, _TOP, _BOTTOM = 250, 420, 200, 26, 12, 46
_TICKS = 5


class Interval(msgspec.Struct, frozen=True):
    """One row of a plot."""

    label: str
    value: float
    low: float | None
    high: float | None
    note: str = ""


def intervals(rows: Sequence[Interval], axis: str, *, zero: bool = False) -> str:
    """Draw rows from top to bottom over one axis; `zero`: always show 0, with a line."""
    low, high, ticks = _axis(
        [bound for row in rows for bound in (row.value, row.low, row.high) if bound is not None], zero=zero
    )

    def across(value: float) -> float:
        return _LABEL + (value - low) / (high - low) * _PLOT

    height = _TOP + _ROW * len(rows) + _BOTTOM
    width = _LABEL + _PLOT + _NOTE
    floor = _TOP + _ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(axis)}" font-family="sans-serif" font-size="13">'
    ]
    for tick in ticks:
        x = across(tick)
        strong = zero and tick == 0
        parts.append(
            f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{floor}" stroke="{"#444" if strong else "#ddd"}"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{floor + 18}" text-anchor="middle" fill="#444">{tick:g}</text>')
    for number, row in enumerate(rows):
        parts += _row(row, _TOP + _ROW * number + _ROW / 2, across)
    parts.append(f'<text x="{_LABEL + _PLOT / 2}" y="{floor + 38}" text-anchor="middle">{escape(axis)}</text></svg>')
    return "".join(parts)


def _row(row: Interval, y: float, across: Callable[[float], float]) -> list[str]:
    x = across(row.value)
    label = row.label if len(row.label) <= 34 else row.label[:33] + "…"
    said = f"{row.value:.4f}" + (f", {row.note}" if row.note else "")
    parts = [f'<text x="{_LABEL - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>']
    if row.low is not None and row.high is not None:
        left, right = across(row.low), across(row.high)
        parts.append(
            f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#2b6cb0" stroke-width="3"/>'
        )
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#2b6cb0"/>')
    parts.append(f'<text x="{_LABEL + _PLOT + 14}" y="{y + 4:.1f}" fill="#444">{escape(said)}</text>')
    return parts


def _axis(values: Sequence[float], *, zero: bool) -> tuple[float, float, list[float]]:
    """Return a range around the values, and round ticks inside it."""
    finite = [*values, 0.0] if zero else values
    low, high = min(finite), max(finite)
    margin = (high - low) * 0.06 or 0.01
    low, high = low - margin, high + margin
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return low, high, [round(number * step, 10) for number in range(first, last + 1)]
