"""From a change's arrival to the moment it can be found: figures per collection and store, for both profiles."""

import bisect
import datetime
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from pipeline.ports.signals import EVERY_COLLECTION, ChangeHistogram, ChangeTime
from schemas.document import Stage

WINDOW_S = 300.0
"""Seconds that the percentiles look back."""
SAMPLES = 4_000
"""The newest that one series keeps."""
COLLECTIONS = 200
"""More than this are counted as one, so that no publisher can fill the memory with names."""
OTHERS = "others"
BOUNDS_S = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class ChangeTimes:
    """Collects samples. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._series: dict[tuple[str, str], _Series] = {}
        self._collections: set[str] = set()

    def observe(self, document: str, stores: Iterable[str], seconds: float) -> None:
        """Note that a change of this document (`source/collection/key`) was in these stores after so long."""
        collection = self._named("/".join(document.split("/", 2)[:2]))
        for store in stores:
            for name in (collection, EVERY_COLLECTION):
                self._series.setdefault((name, store), _Series()).add(self._clock(), max(seconds, 0.0))

    def published(self, document: str, stage: Stage, arrived: str, now: str) -> None:
        """Note that a change that arrived at `arrived` (empty: unknown, not counted) is visible at this stage."""
        if arrived:
            stores = ("text",) if stage == "text" else ("chunks", "graph")
            self.observe(document, stores, seconds_between(arrived, now))

    def _named(self, collection: str) -> str:
        if collection not in self._collections:
            if len(self._collections) >= COLLECTIONS:
                return OTHERS
            self._collections.add(collection)
        return collection

    def figures(self) -> list[ChangeTime]:
        """Return the percentiles of the last minutes, by collection and store; series without samples are absent."""
        since, found = self._clock() - WINDOW_S, []
        for (collection, store), series in sorted(self._series.items()):
            recent = series.since(since)
            if recent:
                p50, p95, p99 = (round(1000 * percentile(recent, share), 1) for share in (0.5, 0.95, 0.99))
                found.append(
                    ChangeTime(
                        collection=collection, store=store, count=len(recent), p50_ms=p50, p95_ms=p95, p99_ms=p99
                    )
                )
        return found

    def histograms(self) -> list[ChangeHistogram]:
        """Return what was counted since the start, by collection and store; without the sum over collections."""
        return [
            ChangeHistogram(collection=collection, store=store, buckets=series.buckets(), sum_s=series.total)
            for (collection, store), series in sorted(self._series.items())
            if collection != EVERY_COLLECTION
        ]


class _Series:
    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.total = 0.0

    def add(self, at: float, seconds: float) -> None:
        self._samples.append((at, seconds))
        self._counts[bisect.bisect_left(BOUNDS_S, seconds)] += 1
        self.total += seconds

    def since(self, moment: float) -> list[float]:
        """Forget what is older; return the rest in order of size."""
        while self._samples and self._samples[0][0] < moment:
            self._samples.popleft()
        return sorted(seconds for _, seconds in self._samples)

    def buckets(self) -> list[tuple[str, int]]:
        cumulative, found = 0, []
        for bound, number in zip((*map(str, BOUNDS_S), "+Inf"), self._counts, strict=True):
            cumulative += number
            found.append((bound, cumulative))
        return found


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share (0 to 1) of an ordered list does not exceed."""
    return ordered[max(0, math.ceil(round(share * len(ordered), 6)) - 1)]


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds from one RFC 3339 time to another."""
    return (datetime.datetime.fromisoformat(later) - datetime.datetime.fromisoformat(earlier)).total_seconds()
