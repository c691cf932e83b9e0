"""What the state store knows, as Prometheus metrics: generations, records, access classes, sources."""

from collections.abc import Iterator, Sequence

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pipeline.errors import BackendUnavailable
from pipeline.ports.replays import GenerationStatus
from pipeline.ports.runtime import Runtime
from pipeline.ports.source_operations import SourceOverview
from pipeline.recent import Recent

KEPT_S = 10.0
"""Counting takes the longer the more there is; scrapes come every 15 s."""


class _Figures(msgspec.Struct, frozen=True, kw_only=True):
    generations: Sequence[GenerationStatus]
    sources: Sequence[SourceOverview]
    classes: int


class StateMetrics:
    """Absent from a scrape while the state store does not answer: `shinsen_store_up` says that."""

    def __init__(self, runtime: Runtime, classes_limit: int) -> None:
        """Reads nothing yet."""
        self._runtime, self._limit = runtime, classes_limit
        self._recent = Recent(self._read, KEPT_S)

    async def text(self) -> bytes:
        """Return the text format. Never raises for a store that is down."""
        try:
            figures = await self._recent.get()
        except BackendUnavailable:
            return b""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(figures, self._limit))
        return generate_latest(registry)

    async def _read(self) -> _Figures:
        return _Figures(
            generations=await self._runtime.replays.statuses(),
            sources=await self._runtime.sources.overview(),
            classes=len(await self._runtime.state.access_classes()),
        )


class _Families(Collector):
    def __init__(self, figures: _Figures, limit: int) -> None:
        self._figures, self._limit = figures, limit

    def collect(self) -> Iterator[Metric]:
        yield from _of_generations(self._figures.generations)
        yield from _of_sources(self._figures.sources)
        yield GaugeMetricFamily("shinsen_access_classes", "Access classes ever used", value=self._figures.classes)
        yield GaugeMetricFamily("shinsen_access_classes_limit", "More of them raise an alarm", value=self._limit)


def _of_generations(generations: Sequence[GenerationStatus]) -> Iterator[Metric]:
    done = GaugeMetricFamily(
        "shinsen_generation_documents", "Documents at their newest version", labels=["generation", "state"]
    )
    stuck = GaugeMetricFamily("shinsen_generation_stuck", "1 when a rebuild does not go on", labels=["generation"])
    for one in generations:
        done.add_metric([one.name, one.state], one.done)
        stuck.add_metric([one.name], int(bool(one.stuck)))
    yield from (done, stuck)
    records = max((one.records for one in generations), default=0)
    yield GaugeMetricFamily("shinsen_records", "Records, deleted ones included", value=records)


def _of_sources(sources: Sequence[SourceOverview]) -> Iterator[Metric]:
    recent = GaugeMetricFamily("shinsen_source_recent_events", "Last events looked at", labels=["source"])
    late = GaugeMetricFamily(
        "shinsen_source_recent_superseded",
        "Of them, older by position and yet later by time than what stands",
        labels=["source"],
    )
    for one in sources:
        recent.add_metric([one.source], one.recent)
        late.add_metric([one.source], one.superseded)
    yield from (recent, late)
