"""Renders the scheduler's metrics for Prometheus, in the server's thread.

Data that the scheduler changes meanwhile is copied in one step before it is read.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from longshore.engine.queue.entry import Place
from longshore.serve.metrics.engine_observer import MOST_ATTEMPTS, Metrics
from longshore.serve.metrics.families import Labels, counter, gauge, histogram, one_label, registry
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

    def collect() -> Iterator[Metric]:
        yield from _attempts(metrics)
        yield from _plugins(metrics)
        yield from _queue(metrics)
        yield from _cluster(metrics)
        yield from podsets(metrics)
        if process is not None:
            yield from _process(process)

    return registry(collect)


def _attempts(metrics: Metrics) -> Iterator[Metric]:
    attempts = {
        (result, profile): each
        for result, by_profile in metrics.attempts.items()
        for profile, each in by_profile.items()
    }
    yield counter(
        "scheduler_schedule_attempts",
        "Attempts to schedule a pod: unschedulable if plugins rejected it, error if something failed.",
        ["result", "profile"],
        {labels: each.count for labels, each in attempts.items()},
    )
    yield histogram(
        "scheduler_scheduling_attempt_duration_seconds",
        "Time from the start of an attempt to the end of the bind.",
        ["result", "profile"],
        attempts,
    )
    yield histogram(
        "scheduler_scheduling_algorithm_duration_seconds",
        "Time from the start of an attempt to its decision, including PostFilter.",
        [],
        {(): metrics.algorithm},
    )
    yield histogram(
        "scheduler_pod_scheduling_attempts",
        "Attempts that a bound pod needed.",
        [],
        {(): metrics.attempts_needed},
    )
    yield histogram(
        "scheduler_pod_scheduling_sli_duration_seconds",
        "Time from a pod's arrival in the queue to its bind, by its number of attempts.",
        ["attempts"],
        {
            (str(number) if number < MOST_ATTEMPTS else f"{MOST_ATTEMPTS}+",): each
            for number, each in enumerate(metrics.sli, start=1)
            if each.count
        },
    )
    yield counter(
        "scheduler_preemption_attempts",
        "Attempts to make room for a pod by evicting others.",
        [],
        {(): metrics.preemption_attempts},
    )
    yield histogram("scheduler_preemption_victims", "Pods evicted for one pod.", [], {(): metrics.victims})
    yield histogram(
        "scheduler_permit_wait_duration_seconds",
        "Time that pods waited on Permit.",
        ["result"],
        one_label(metrics.permit_waits),
    )


def _plugins(metrics: Metrics) -> Iterator[Metric]:
    points: dict[Labels, Histogram] = {}
    evaluations: dict[Labels, int] = {}
    for profile, sampler in metrics.samplers.items():
        for (point, status), each in sampler.points.copy().items():
            points[point, status, profile] = each
        for (plugin, point), number in sampler.evaluations.copy().items():
            evaluations[plugin, point, profile] = number
    yield histogram(
        "scheduler_framework_extension_point_duration_seconds",
        "Time of all plugins of an extension point, in one attempt out of ten.",
        ["extension_point", "status", "profile"],
        points,
    )
    yield histogram(
        "scheduler_plugin_execution_duration_seconds",
        "Time of one call of a plugin, in one attempt out of ten.",
        ["plugin", "extension_point", "status"],
        metrics.plugins,
    )
    yield counter(
        "scheduler_plugin_evaluation",
        "Attempts in which the plugin was evaluated, estimated from the measured ones.",
        ["plugin", "extension_point", "profile"],
        evaluations,
    )
    yield gauge(
        "longshore_shapes",
        "Shapes of pods whose results are cached.",
        ["profile"],
        {(profile,): metrics.engine.chooser(profile).shapes_kept for profile in metrics.samplers},
    )


def _queue(metrics: Metrics) -> Iterator[Metric]:
    incoming: Counter[Labels] = Counter()
    for (place, why), number in metrics.incoming.copy().items():
        # kube-scheduler counts gated pods as unschedulable here.
        incoming["unschedulable" if place == Place.GATED.value else place, why] += number
    yield counter(
        "scheduler_queue_incoming_pods",
        "Pods added to a queue, by queue and event.",
        ["queue", "event"],
        incoming,
    )
    places: Counter[str] = Counter()
    reasons: Counter[tuple[str, frozenset[str]]] = Counter()
    for entry in metrics.engine.queue.snapshot():
        places[entry.place.value] += 1
        if entry.rejectors and entry.place is not Place.IN_FLIGHT:
            reasons[entry.pod.spec.scheduler_name, entry.rejectors] += 1
    pending = (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)
    yield gauge(
        "scheduler_pending_pods",
        "Pending pods, by queue.",
        ["queue"],
        {(place.value,): places[place.value] for place in pending},
    )
    yield gauge(
        "longshore_pods_in_flight",
        "Pods that are being scheduled, wait on Permit or are being bound.",
        [],
        {(): places[Place.IN_FLIGHT.value]},
    )
    by_plugin: Counter[Labels] = Counter()
    for (profile, plugins), number in reasons.items():
        for plugin in plugins:
            by_plugin[plugin, profile] += number
    yield gauge(
        "scheduler_unschedulable_pods",
        "Waiting pods by each plugin that rejected them in the last attempt.",
        ["plugin", "profile"],
        by_plugin,
    )


def _cluster(metrics: Metrics) -> Iterator[Metric]:
    cluster = metrics.engine.cluster
    yield gauge(
        "scheduler_cache_size",
        "Nodes, pods and assumed pods in the cache.",
        ["type"],
        {
            ("nodes",): cluster.node_count,
            ("pods",): cluster.pod_count,
            ("assumed_pods",): cluster.assumed_count,
        },
    )
    yield gauge(
        "longshore_binds_in_flight",
        "Binds sent and not answered.",
        [],
        {(): metrics.engine.binds_in_flight},
    )


def _process(process: Process) -> Iterator[Metric]:
    if process.lease_name:
        yield gauge(
            "leader_election_master_status",
            "Whether this replica holds the lease.",
            ["name"],
            {(process.lease_name,): process.leads},
        )
    yield gauge(
        "longshore_writes_in_flight",
        "Writes sent and not answered, binds included.",
        [],
        {(): process.writes_in_flight},
    )
    yield gauge(
        "longshore_inbox_events",
        "Changes received and not yet passed to the engine.",
        [],
        {(): process.events_waiting},
    )
    yield from mirrored(process.mirrors)


def mirrored(mirrors: Iterable[Mirror]) -> Iterator[Metric]:
    """Return the metrics of reflectors."""
    found = list(mirrors)
    yield gauge(
        "longshore_reflector_synced",
        "Whether the resource has been listed completely.",
        ["resource"],
        {(each.name,): each.is_synced for each in found},
    )
    yield gauge(
        "longshore_reflector_objects",
        "Objects mirrored.",
        ["resource"],
        {(each.name,): each.size for each in found},
    )
    yield counter(
        "longshore_reflector_lists",
        "How often the resource was listed completely.",
        ["resource"],
        {(each.name,): each.lists for each in found},
    )
