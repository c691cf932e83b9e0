"""Change-to-searchable figures: percentiles over a window, histograms since the start."""

from itertools import count

import pytest

from pipeline.change_times import COLLECTIONS, OTHERS, SAMPLES, WINDOW_S, ChangeTimes, percentile, seconds_between
from pipeline.ports.signals import EVERY_COLLECTION


class Now:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([1.0], 0.5, 1.0), ([1.0, 2.0], 0.5, 1.0), ([1.0, 2.0], 0.95, 2.0), (list(map(float, range(1, 101))), 0.95, 95.0)],
)
def test_percentiles_are_values_that_were_seen(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_figures_by_collection_store_and_over_all() -> None:
    times = ChangeTimes(Now())
    for n in range(1, 101):
        times.observe(f"erp/orders/{n}", ("chunks", "graph"), n / 100)
    times.observe("erp/parts/x/y", ("chunks",), 9.0)
    found = {(f.collection, f.store): f for f in times.figures()}
    orders = found["erp/orders", "chunks"]
    assert (orders.count, orders.p50_ms, orders.p95_ms, orders.p99_ms) == (100, 500.0, 950.0, 990.0)
    assert found["erp/parts", "chunks"].p50_ms == 9000.0
    assert found[EVERY_COLLECTION, "chunks"].count == 101 and ("erp/parts", "graph") not in found


def test_what_is_older_than_the_window_is_left_out_of_percentiles_and_stays_in_the_histogram() -> None:
    now = Now()
    times = ChangeTimes(now)
    times.observe("erp/orders/1", ("chunks",), 7.0)
    now.at = WINDOW_S + 1
    assert times.figures() == []
    times.observe("erp/orders/2", ("chunks",), 0.2)
    assert [f.p99_ms for f in times.figures() if f.collection == "erp/orders"] == [200.0]
    [histogram] = times.histograms()
    assert dict(histogram.buckets)["0.25"] == 1 and dict(histogram.buckets)["+Inf"] == 2
    assert histogram.sum_s == pytest.approx(7.2)


def test_memory_is_bounded_by_samples_and_collections() -> None:
    times = ChangeTimes(Now())
    for n in count():
        times.observe(f"s/c{n}/k", ("chunks",), 1.0)
        if n > COLLECTIONS + 5:
            break
    for _ in range(SAMPLES + 10):
        times.observe("s/c0/k", ("chunks",), 1.0)
    found = {f.collection: f.count for f in times.figures()}
    assert found[OTHERS] == 7 and len(found) == COLLECTIONS + 2
    assert found["s/c0"] == SAMPLES


def test_clocks_that_disagree_give_no_negative_time() -> None:
    times = ChangeTimes(Now())
    times.observe("s/c/k", ("chunks",), seconds_between("2025-01-01T00:00:01Z", "2025-01-01T00:00:00Z"))
    assert [f.p50_ms for f in times.figures()] == [0.0, 0.0]
