"""The pipeline's own figures as Prometheus metrics: read at each scrape, kept nowhere."""

import contextlib
import datetime
from collections.abc import Iterator

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pipeline.errors import BackendUnavailable
from pipeline.ports.runtime import Runtime, Watermarks
from pipeline.ports.signals import ChangeHistogram, Health, Signals


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a scrape read; None where a store did not answer."""

    health: Health
    histograms: list[ChangeHistogram]
    marks: Watermarks | None
    signals: Signals | None
    now: datetime.datetime


async def see(runtime: Runtime) -> Seen:
    """Read what there is to be read."""
    marks, signals = None, None
    with contextlib.suppress(BackendUnavailable):  # `shinsen_store_up` says so
        marks, signals = await runtime.watermarks(), await runtime.signals()
    return Seen(
        health=await runtime.health(),
        histograms=runtime.histograms(),
        marks=marks,
        signals=signals,
        now=datetime.datetime.now(datetime.UTC),
    )


def text_of(seen: Seen) -> bytes:
    """Return the text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Pipeline(seen))
    return generate_latest(registry)


class _Pipeline(Collector):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        yield _times(self._seen.histograms)
        yield _gauge("shinsen_indexing_paused", "1 while indexing stands still", int(bool(self._seen.health.paused)))
        if self._seen.marks is not None:
            yield _pending(self._seen.marks)
        if self._seen.signals is not None:
            yield from _signals(self._seen.signals, self._seen.now)


def _times(histograms: list[ChangeHistogram]) -> Metric:
    family = HistogramMetricFamily(
        "shinsen_change_to_searchable_seconds",
        "From a change's arrival until it was in a store",
        labels=["collection", "store"],
    )
    for one in histograms:
        family.add_metric([one.collection, one.store], one.buckets, one.sum_s)
    return family


def _pending(marks: Watermarks) -> Metric:
    family = GaugeMetricFamily("shinsen_pending_documents", "Documents not there yet", labels=["stage"])
    for stage, number in (("full", marks.pending), ("text", marks.pending_text), ("relink", marks.relinks)):
        family.add_metric([stage], number)
    return family


def _signals(signals: Signals, now: datetime.datetime) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        "shinsen_stage_lag", "Messages that a stage has not acknowledged", labels=["stage", "topic", "partition"]
    )
    members = GaugeMetricFamily("shinsen_stage_members", "Workers that serve a stage", labels=["stage"])
    age = GaugeMetricFamily("shinsen_stage_oldest_seconds", "Age of a stage's oldest open message", labels=["stage"])
    for stage in signals.stages:
        members.add_metric([stage.stage], stage.members)
        age.add_metric([stage.stage], _age(stage.oldest, now))
        for part in stage.partitions:
            lag.add_metric([stage.stage, part.topic, str(part.partition)], part.lag)
        if not stage.partitions:
            lag.add_metric([stage.stage, "", ""], stage.lag)
    yield from (lag, members, age)
    repairs = CounterMetricFamily(
        "shinsen_index_repairs",
        "Documents published again as an index did not hold what it had accepted",
        labels=["store"],
    )
    for store, number in signals.repaired.items():
        repairs.add_metric([store], number)
    yield repairs
    yield _gauge("shinsen_generation_outdated", "1 when built with other versions", bool(signals.outdated))
    yield _gauge("shinsen_dead_letters", "Open dead letters", signals.dead_letters)
    yield _gauge(
        "shinsen_oldest_unapplied_seconds", "Age of the oldest open event", _age(signals.oldest_unapplied, now)
    )


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=value)


def _age(moment: str, now: datetime.datetime) -> float:
    return max(0.0, (now - datetime.datetime.fromisoformat(moment)).total_seconds()) if moment else 0.0
