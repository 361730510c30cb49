"""Prometheus metric families made from counts and histograms, and the registry that renders them."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from longshore import __version__
from longshore.serve.metrics.histogram import Histogram

# The values of labels, in the order of their names.
Labels = tuple[str, ...]
L = TypeVar("L", bound=Labels)
T = TypeVar("T")


class _Collected(Collector):
    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering collects nothing."""
        return ()

    def collect(self) -> Iterable[Metric]:
        yield from self._collect()
        yield build_info()


def registry(collect: Callable[[], Iterable[Metric]]) -> CollectorRegistry:
    """Return a registry with these metrics and those of the process. `collect` is called for each scrape."""
    made = CollectorRegistry()
    made.register(_Collected(collect))
    ProcessCollector(registry=made)
    return made


def one_label(values: Mapping[str, T]) -> Mapping[Labels, T]:
    """Return the values by a tuple of one label. They are copied first, as in `counter`."""
    return {(label,): value for label, value in dict(values).items()}


def counter(name: str, documentation: str, labels: Iterable[str], counts: Mapping[L, float]) -> Metric:
    """Return a counter family. The counts are copied in one step, because another thread may add to them."""
    family = CounterMetricFamily(name, documentation, labels=list(labels))
    for values, number in dict(counts).items():
        family.add_metric(values, number)
    return family


def gauge(name: str, documentation: str, labels: Iterable[str], amounts: Mapping[L, float]) -> Metric:
    """Return a gauge family, in the same way."""
    family = GaugeMetricFamily(name, documentation, labels=list(labels))
    for values, amount in dict(amounts).items():
        family.add_metric(values, amount)
    return family


def histogram(
    name: str, documentation: str, labels: Iterable[str], histograms: Mapping[L, Histogram]
) -> Metric:
    """Return a histogram family, in the same way."""
    family = HistogramMetricFamily(name, documentation, labels=list(labels))
    for values, each in dict(histograms).items():
        buckets, total = each.cumulative()
        family.add_metric(values, buckets, total)
    return family


def build_info() -> Metric:
    return gauge("longshore_build_info", "Always 1.", ["version"], {(__version__,): 1})
