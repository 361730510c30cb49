"""Renders the scheduler's metrics for Prometheus, in the server's thread.

Data that the scheduler changes meanwhile is copied in one step before it is read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from longshore import __version__
from longshore.engine.queue.entry import Place
from longshore.serve.metrics.engine_observer import MOST_ATTEMPTS, Metrics
from longshore.serve.metrics.histogram import Histogram
from longshore.serve.metrics.pod_set_metrics import podsets


class Mirror(Protocol):
    """The parts of a reflector that metrics read."""

    @property
    def name(self) -> str:
        """The name of the resource."""
        ...

    @property
    def is_synced(self) -> bool: ...

    @property
    def size(self) -> int: ...

    @property
    def lists(self) -> int: ...


class Process(Protocol):
    """The driver of a real cluster, as far as metrics read it."""

    @property
    def lease_name(self) -> str:
        """The name of the lease, or an empty string without one."""
        ...

    @property
    def leads(self) -> bool: ...

    @property
    def writes_in_flight(self) -> int: ...

    @property
    def events_waiting(self) -> int: ...

    @property
    def mirrors(self) -> Iterable[Mirror]: ...


def registry_of(metrics: Metrics, process: Process | None = None) -> CollectorRegistry:
    """Return the registry with all metrics of a scheduler, or only the engine's without a process."""
    registry = CollectorRegistry()
    registry.register(_Collected(metrics, process))
    ProcessCollector(registry=registry)
    return registry


class _Collected(Collector):
    def __init__(self, metrics: Metrics, process: Process | None) -> None:
        self._metrics = metrics
        self._process = process

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering collects nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from _attempts(self._metrics)
        yield from _plugins(self._metrics)
        yield from _queue(self._metrics)
        yield from _cluster(self._metrics)
        yield from podsets(self._metrics)
        if self._process is not None:
            yield from _process(self._process)


def _attempts(metrics: Metrics) -> Iterator[Metric]:
    attempts = CounterMetricFamily(
        "scheduler_schedule_attempts",
        "Attempts to schedule a pod: unschedulable if plugins rejected it, error if something failed.",
        labels=["result", "profile"],
    )
    durations = HistogramMetricFamily(
        "scheduler_scheduling_attempt_duration_seconds",
        "Time from the start of an attempt to the end of the bind.",
        labels=["result", "profile"],
    )
    for result, by_profile in metrics.attempts.items():
        for profile, histogram in by_profile.items():
            attempts.add_metric([result, profile], histogram.count)
            _add(durations, [result, profile], histogram)
    yield attempts
    yield durations
    yield _histogram(
        "scheduler_scheduling_algorithm_duration_seconds",
        "Time from the start of an attempt to its decision, including PostFilter.",
        metrics.algorithm,
    )
    yield _histogram(
        "scheduler_pod_scheduling_attempts", "Attempts that a bound pod needed.", metrics.attempts_needed
    )
    sli = HistogramMetricFamily(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "Time from a pod's arrival in the queue to its bind, by its number of attempts.",
        labels=["attempts"],
    )
    for number, histogram in enumerate(metrics.sli, start=1):
        if histogram.count:
            _add(sli, [str(number) if number < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+"], histogram)
    yield sli
    yield CounterMetricFamily(
        "scheduler_preemption_attempts",
        "Attempts to make room for a pod by evicting others.",
        metrics.preemption_attempts,
    )
    yield _histogram("scheduler_preemption_victims", "Pods evicted for one pod.", metrics.victims)
    waits = HistogramMetricFamily(
        "scheduler_permit_wait_duration_seconds", "Time that pods waited on Permit.", labels=["result"]
    )
    for code, histogram in metrics.permit_waits.copy().items():
        _add(waits, [code], histogram)
    yield waits


def _plugins(metrics: Metrics) -> Iterator[Metric]:
    points = HistogramMetricFamily(
        "scheduler_framework_extension_point_duration_seconds",
        "Time of all plugins of an extension point, in one attempt out of ten.",
        labels=["extension_point", "status", "profile"],
    )
    plugins = HistogramMetricFamily(
        "scheduler_plugin_execution_duration_seconds",
        "Time of one call of a plugin, in one attempt out of ten.",
        labels=["plugin", "extension_point", "status"],
    )
    evaluations = CounterMetricFamily(
        "scheduler_plugin_evaluation",
        "Attempts in which the plugin was evaluated, estimated from the measured ones.",
        labels=["plugin", "extension_point", "profile"],
    )
    shapes = GaugeMetricFamily(
        "longshore_shapes", "Shapes of pods whose results are cached.", labels=["profile"]
    )
    for profile, sampler in metrics.samplers.items():
        for (point, status), histogram in sampler.points.copy().items():
            _add(points, [point, status, profile], histogram)
        for (plugin, point), number in sampler.evaluations.copy().items():
            evaluations.add_metric([plugin, point, profile], number)
        shapes.add_metric([profile], metrics.engine.chooser(profile).shapes_kept)
    for key, histogram in metrics.plugins.copy().items():
        _add(plugins, list(key), histogram)
    yield points
    yield plugins
    yield evaluations
    yield shapes


def _queue(metrics: Metrics) -> Iterator[Metric]:
    incoming = CounterMetricFamily(
        "scheduler_queue_incoming_pods",
        "Pods added to a queue, by queue and event.",
        labels=["queue", "event"],
    )
    numbers: Counter[tuple[str, str]] = Counter()
    for (place, why), number in metrics.incoming.copy().items():
        # kube-scheduler counts gated pods as unschedulable here.
        numbers["unschedulable" if place == Place.GATED.value else place, why] += number
    for labels, number in numbers.items():
        incoming.add_metric(list(labels), number)
    yield incoming
    places: Counter[str] = Counter()
    reasons: Counter[tuple[str, frozenset[str]]] = Counter()
    for entry in metrics.engine.queue.snapshot():
        places[entry.place.value] += 1
        if entry.rejectors and entry.place is not Place.IN_FLIGHT:
            reasons[entry.pod.spec.scheduler_name, entry.rejectors] += 1
    pending = GaugeMetricFamily("scheduler_pending_pods", "Pending pods, by queue.", labels=["queue"])
    for place in (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED):
        pending.add_metric([place.value], places[place.value])
    yield pending
    yield GaugeMetricFamily(
        "longshore_pods_in_flight",
        "Pods that are being scheduled, wait on Permit or are being bound.",
        places[Place.IN_FLIGHT.value],
    )
    unschedulable = GaugeMetricFamily(
        "scheduler_unschedulable_pods",
        "Waiting pods by each plugin that rejected them in the last attempt.",
        labels=["plugin", "profile"],
    )
    by_plugin: Counter[tuple[str, str]] = Counter()
    for (profile, plugins), number in reasons.items():
        for plugin in plugins:
            by_plugin[plugin, profile] += number
    for labels, number in by_plugin.items():
        unschedulable.add_metric(list(labels), number)
    yield unschedulable


def _cluster(metrics: Metrics) -> Iterator[Metric]:
    cluster = metrics.engine.cluster
    sizes = GaugeMetricFamily(
        "scheduler_cache_size", "Nodes, pods and assumed pods in the cache.", labels=["type"]
    )
    sizes.add_metric(["nodes"], cluster.node_count)
    sizes.add_metric(["pods"], cluster.pod_count)
    sizes.add_metric(["assumed_pods"], cluster.assumed_count)
    yield sizes
    yield GaugeMetricFamily(
        "longshore_binds_in_flight", "Binds sent and not answered.", metrics.engine.binds_in_flight
    )
    yield build_info()


def build_info() -> Metric:
    build = GaugeMetricFamily("longshore_build_info", "Always 1.", labels=["version"])
    build.add_metric([__version__], 1)
    return build


def _process(process: Process) -> Iterator[Metric]:
    if process.lease_name:
        leads = GaugeMetricFamily(
            "leader_election_master_status", "Whether this replica holds the lease.", labels=["name"]
        )
        leads.add_metric([process.lease_name], process.leads)
        yield leads
    yield GaugeMetricFamily(
        "longshore_writes_in_flight",
        "Writes sent and not answered, binds included.",
        process.writes_in_flight,
    )
    yield GaugeMetricFamily(
        "longshore_inbox_events", "Changes received and not yet passed to the engine.", process.events_waiting
    )
    yield from mirrored(process.mirrors)


def mirrored(mirrors: Iterable[Mirror]) -> Iterator[Metric]:
    synced = GaugeMetricFamily(
        "longshore_reflector_synced", "Whether the resource has been listed completely.", labels=["resource"]
    )
    objects = GaugeMetricFamily("longshore_reflector_objects", "Objects mirrored.", labels=["resource"])
    lists = CounterMetricFamily(
        "longshore_reflector_lists", "How often the resource was listed completely.", labels=["resource"]
    )
    for mirror in mirrors:
        synced.add_metric([mirror.name], mirror.is_synced)
        objects.add_metric([mirror.name], mirror.size)
        lists.add_metric([mirror.name], mirror.lists)
    yield synced
    yield objects
    yield lists


def _histogram(name: str, documentation: str, histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=[])
    _add(family, [], histogram)
    return family


def _add(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    buckets, total = histogram.cumulative()
    family.add_metric(labels, buckets, total)
