"""Generations, records and access classes as Prometheus metrics, counted in the state store."""

from collections.abc import Iterator

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pipeline.errors import BackendUnavailable
from pipeline.ports.state import State
from pipeline.recent import Recent

KEPT_S = 10.0
"""Counting takes the longer the more there is; scrapes come every 15 s."""


class _Figures(msgspec.Struct, frozen=True, kw_only=True):
    documents: dict[tuple[str, str], int]
    """Documents by (generation, state)."""
    records: int
    classes: int


class GenerationMetrics:
    """What a scrape shows of the generations; absent while the state store does not answer (`shinsen_store_up`)."""

    def __init__(self, state: State, classes_limit: int) -> None:
        """Reads nothing yet."""
        self._state, self._limit = state, classes_limit
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
        documents, records = {}, 0
        for generation in await self._state.generations():
            counts = await self._state.counts(generation.name)
            documents[generation.name, generation.state] = counts["documents"]
            records = counts["records"]
        return _Figures(documents=documents, records=records, classes=len(await self._state.access_classes()))


class _Families(Collector):
    def __init__(self, figures: _Figures, limit: int) -> None:
        self._figures, self._limit = figures, limit

    def collect(self) -> Iterator[Metric]:
        documents = GaugeMetricFamily(
            "shinsen_generation_documents", "Documents that a generation holds", labels=["generation", "state"]
        )
        for (name, state), number in self._figures.documents.items():
            documents.add_metric([name, state], number)
        yield documents
        yield GaugeMetricFamily("shinsen_records", "Records, deleted ones included", value=self._figures.records)
        yield GaugeMetricFamily("shinsen_access_classes", "Access classes ever used", value=self._figures.classes)
        yield GaugeMetricFamily("shinsen_access_classes_limit", "More of them raise an alarm", value=self._limit)
