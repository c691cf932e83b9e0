"""How fast a generation is being built, how long it will take, and whether it stands still."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pipeline.ports.generations import Generation, Rebuild, Standing
from pipeline.ports.replays import GenerationStatus
from pipeline.replay.supply import Look

WINDOW_S = 60.0
"""Over which the rate is measured."""
STUCK_S = 60.0
"""Without any document for so long, somebody should look."""


class _Sample(msgspec.Struct, frozen=True):
    at: float
    done: int


class Meter:
    """Keeps samples of one generation. Numbers are of this process: a new one knows the rate after two looks."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._samples: deque[_Sample] = deque()
        self._moved = monotonic()

    def note(self, done: int) -> None:
        """Take a sample."""
        now = self._monotonic()
        if not self._samples or self._samples[-1].done != done:
            self._moved = now
        self._samples.append(_Sample(now, done))
        while len(self._samples) > 2 and self._samples[0].at < now - WINDOW_S:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Documents per second; 0 while it is not known."""
        first, last = (self._samples[0], self._samples[-1]) if self._samples else (_Sample(0, 0), _Sample(0, 0))
        return max(0.0, (last.done - first.done) / (last.at - first.at)) if last.at > first.at else 0.0

    @property
    def still_s(self) -> float:
        """Seconds since the number last changed, as far as this process saw it."""
        return self._monotonic() - self._moved


def status_of(
    generation: Generation, rebuild: Rebuild | None, standing: Standing, look: Look, meter: Meter, live_since: str
) -> GenerationStatus:
    """Return one generation as operators see it."""
    meter.note(standing.records - standing.behind - standing.relinks)
    todo = standing.behind + standing.relinks
    left = todo / meter.rate if todo and meter.rate else 0.0 if not todo else None
    return GenerationStatus(
        name=generation.name,
        state=generation.state,
        created_at=generation.created_at,
        versions=generation.versions,
        live_since=live_since,
        phase=rebuild.phase if rebuild else "",
        records=standing.records,
        done=standing.records - standing.behind,
        relinks=standing.relinks,
        filled=rebuild.filled if rebuild else 0,
        lag=look.lag,
        members=look.members,
        rate=round(meter.rate, 2),
        left_s=None if left is None else round(left, 1),
        stuck=_stuck(generation, rebuild, todo, look, meter),
        stopped=rebuild is not None and bool(rebuild.failure),
    )


def brief(statuses: Sequence[GenerationStatus]) -> list[dict[str, Any]]:
    """Return what a page of many things shows of generations: progress, and nothing that is empty."""
    always = ("name", "state", "done", "records", "versions")
    shown = (*always, "phase", "relinks", "rate", "left_s", "lag", "stuck")
    return [{name: value for name in shown if (value := getattr(one, name)) or name in always} for one in statuses]


def _stuck(generation: Generation, rebuild: Rebuild | None, todo: int, look: Look, meter: Meter) -> str:
    """Say why nothing moves, and what to do."""
    name = generation.name
    if generation.state == "pruning":
        return f"its removal was cut off: `shinsen prune {name}` goes on with it"
    if rebuild is not None and rebuild.failure:
        return f"{rebuild.failure}; the same `shinsen replay` goes on with it, `shinsen prune {name}` drops it"
    if look.members == 0:
        built = ", ".join(f"{part} {version}" for part, version in sorted(generation.versions.items()))
        return f"no worker serves it: start workers whose settings make these versions: {built}"
    partial = rebuild is not None and rebuild.phase == "partial"
    if todo and not partial and meter.still_s > STUCK_S:
        return (
            f"no document has come for {meter.still_s:.0f} s, {todo} are left: see the log for documents that fail, "
            "`shinsen dlq list`, and `shinsen status` for stores that do not answer"
        )
    return ""
