"""Prometheus metrics of an extender: its requests, its cache and the age of its measurements."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from longshore import __version__
from longshore.cluster import ClusterState
from longshore.serve.metrics.histogram import Histogram, exponential

_SECONDS = exponential(0.0001, 2, 16)


class Traffic:
    """Counts of requests, by the verb of the URL."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.errors: Counter[str] = Counter()
        self.seconds: dict[str, Histogram] = {}
        # Nodes in requests, and nodes that passed a filter or got a score.
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()

    def count(self, verb: str, status: int, seconds: float, *, failed: bool) -> None:
        self.requests[verb, status] += 1
        self.errors[verb] += failed
        histogram = self.seconds.get(verb)
        if histogram is None:
            histogram = self.seconds[verb] = Histogram(_SECONDS)
        histogram.observe(seconds)
        histogram.tidy()

    def nodes(self, verb: str, *, asked: int, answered: int) -> None:
        self.asked[verb] += asked
        self.answered[verb] += answered


def registry_of(
    traffic: Traffic, cluster: ClusterState, *, wall_clock: Callable[[], float] = time.time
) -> CollectorRegistry:
    """Return the registry with all metrics of an extender; `cluster` is its own cache."""
    registry = CollectorRegistry()
    registry.register(_Collected(traffic, cluster, wall_clock))
    ProcessCollector(registry=registry)
    return registry


class _Collected(Collector):
    def __init__(self, traffic: Traffic, cluster: ClusterState, wall_clock: Callable[[], float]) -> None:
        self._traffic = traffic
        self._cluster = cluster
        self._wall_clock = wall_clock

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering collects nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from _requests(self._traffic)
        yield from _measurements(self._cluster, self._wall_clock())
        sizes = GaugeMetricFamily(
            "longshore_extender_cache_size", "Nodes and pods in the extender's own cache.", labels=["type"]
        )
        sizes.add_metric(["nodes"], self._cluster.node_count)
        sizes.add_metric(["pods"], self._cluster.pod_count)
        yield sizes
        build = GaugeMetricFamily("longshore_build_info", "Always 1.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build


def _requests(traffic: Traffic) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "longshore_extender_requests", "Requests by verb and HTTP status.", labels=["verb", "code"]
    )
    for (verb, status), number in traffic.requests.items():
        requests.add_metric([verb, str(status)], number)
    yield requests
    errors = CounterMetricFamily(
        "longshore_extender_errors",
        "Requests answered with an error, regardless of the HTTP status.",
        labels=["verb"],
    )
    for verb, number in traffic.errors.items():
        errors.add_metric([verb], number)
    yield errors
    seconds = HistogramMetricFamily(
        "longshore_extender_request_duration_seconds",
        "Time from the last byte of a request to its answer.",
        labels=["verb"],
    )
    for verb, histogram in traffic.seconds.items():
        buckets, total = histogram.cumulative()
        seconds.add_metric([verb], buckets, total)
    yield seconds
    for name, meaning, numbers in (
        ("asked", "Nodes in requests.", traffic.asked),
        ("answered", "Nodes that passed a filter or got a score.", traffic.answered),
    ):
        nodes = CounterMetricFamily(f"longshore_extender_nodes_{name}", meaning, labels=["verb"])
        for verb, number in numbers.items():
            nodes.add_metric([verb], number)
        yield nodes


def _measurements(cluster: ClusterState, now: float) -> Iterator[Metric]:
    ages = GaugeMetricFamily(
        "longshore_measurement_age_seconds",
        "Age of the newest and the oldest value of a measure, of values with a time.",
        labels=["measure", "which"],
    )
    measured = GaugeMetricFamily(
        "longshore_measured_nodes", "Nodes that have a fresh value of the measure.", labels=["measure"]
    )
    nodes = cluster.all_nodes()
    for name in cluster.measures.names:
        known = ~np.isnan(cluster.measures.value(name, nodes)) & cluster.known
        measured.add_metric([name], int(np.count_nonzero(known)))
        times = cluster.measures.time(name, nodes)
        times = times[cluster.known & ~np.isnan(times)]
        if len(times):
            ages.add_metric([name, "newest"], now - float(times.max()))
            ages.add_metric([name, "oldest"], now - float(times.min()))
    yield ages
    yield measured
