"""Prometheus metrics of an extender: its requests, its cache and the age of its measurements."""

import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from longshore.cluster import ClusterState
from longshore.serve.metrics.families import Labels, counter, gauge, histogram, one_label, registry
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

    def collect() -> Iterator[Metric]:
        yield from _requests(traffic)
        yield from _measurements(cluster, wall_clock())
        yield gauge(
            "longshore_extender_cache_size",
            "Nodes and pods in the extender's own cache.",
            ["type"],
            {("nodes",): cluster.node_count, ("pods",): cluster.pod_count},
        )

    return registry(collect)


def _requests(traffic: Traffic) -> Iterator[Metric]:
    yield counter(
        "longshore_extender_requests",
        "Requests by verb and HTTP status.",
        ["verb", "code"],
        {(verb, str(status)): number for (verb, status), number in traffic.requests.items()},
    )
    yield counter(
        "longshore_extender_errors",
        "Requests answered with an error, regardless of the HTTP status.",
        ["verb"],
        one_label(traffic.errors),
    )
    yield histogram(
        "longshore_extender_request_duration_seconds",
        "Time from the last byte of a request to its answer.",
        ["verb"],
        one_label(traffic.seconds),
    )
    yield counter("longshore_extender_nodes_asked", "Nodes in requests.", ["verb"], one_label(traffic.asked))
    yield counter(
        "longshore_extender_nodes_answered",
        "Nodes that passed a filter or got a score.",
        ["verb"],
        one_label(traffic.answered),
    )


def _measurements(cluster: ClusterState, now: float) -> Iterator[Metric]:
    ages: dict[Labels, float] = {}
    measured: dict[Labels, float] = {}
    nodes = cluster.all_nodes()
    for name in cluster.measures.names:
        known = ~np.isnan(cluster.measures.value(name, nodes)) & cluster.known
        measured[name,] = int(np.count_nonzero(known))
        times = cluster.measures.time(name, nodes)
        times = times[cluster.known & ~np.isnan(times)]
        if len(times):
            ages[name, "newest"] = now - float(times.max())
            ages[name, "oldest"] = now - float(times.min())
    yield gauge(
        "longshore_measurement_age_seconds",
        "Age of the newest and the oldest value of a measure, of values with a time.",
        ["measure", "which"],
        ages,
    )
    yield gauge(
        "longshore_measured_nodes", "Nodes that have a fresh value of the measure.", ["measure"], measured
    )
