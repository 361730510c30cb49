"""What a pod's spreading comes down to: its own constraints, or the profile's for pods that have none.

The profile's constraints do not say which pods to spread among. That follows from the services that select
the pod and from the controller that owns it; a pod that has neither is not spread.
"""

from collections.abc import Iterable, Mapping

import msgspec

from longshore.api import (
    InvalidSelector,
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
    has_labels,
    selects,
)
from longshore.cluster import ClusterState, PodSelector

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", max_skew=5, when_unsatisfiable=SOFT),
)

_EVERYTHING = LabelSelector()
_Owner = ReplicationController | ReplicaSet | StatefulSet
_OWNERS: Mapping[tuple[str, str], type[_Owner]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}


class Constraint(msgspec.Struct, frozen=True):
    """A constraint with its defaults filled in.

    `pods` are those that count. It is None where the selector is empty: kube-scheduler counts no pod then,
    though it takes every pod to match.
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector | None
    pods: PodSelector | None
    honor_affinity: bool
    honor_taints: bool
    # Whether the pod itself is among those it is to be spread among.
    self_match: bool


def own_constraints(pod: Pod, action: str) -> tuple[Constraint, ...]:
    """Those that the pod has itself, of one of the two kinds. Raises `InvalidSelector`."""
    return tuple(
        _constraint(pod, constraint, selector_of(constraint, pod))
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == action
    )


def selector_of(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    """The selector of the pod's constraint with the values that the pod has for `matchLabelKeys`."""
    selector, labels = constraint.label_selector, pod.metadata.labels
    wanted = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    return selector if selector is None or not wanted else _both(wanted, selector)


class ServiceSelectors:
    """What the services of each namespace look for, in step with the cluster."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, list[Mapping[str, str]]] = {}
        self._seen: tuple[ClusterState, int] | None = None

    def about(self, pod: Pod, cluster: ClusterState) -> dict[str, str]:
        """What the services that select the pod look for, taken together."""
        seen = (cluster, cluster.version(Service))
        if seen != self._seen:
            self._seen = seen
            self._by_namespace = {}
            for service in cluster.objects(Service):
                self._by_namespace.setdefault(service.metadata.namespace, []).append(service.spec.selector)
        wanted: dict[str, str] = {}
        for selector in self._by_namespace.get(pod.metadata.namespace, ()):
            if has_labels(selector, pod.metadata.labels):
                wanted |= selector
        return wanted


def owner_of(pod: Pod, cluster: ClusterState) -> _Owner | None:
    """The controller of the pod, if it is one that tells which pods are its own."""
    kind = owner_kind(pod)
    controller = pod.metadata.controller
    if kind is None or controller is None:
        return None
    return cluster.get(kind, f"{pod.metadata.namespace}/{controller.name}")


def owner_kind(pod: Pod) -> type[_Owner] | None:
    controller = pod.metadata.controller
    return None if controller is None else _OWNERS.get((controller.api_version, controller.kind))


def default_constraints(
    pod: Pod, defaults: Iterable[TopologySpreadConstraint], services: Mapping[str, str], owner: _Owner | None
) -> tuple[Constraint, ...]:
    """The profile's constraints for a pod that has none, given what its services and its owner select."""
    selector = _default_selector(services, owner)
    if selector == _EVERYTHING:
        return ()
    return tuple(_constraint(pod, constraint, selector) for constraint in defaults)


def _default_selector(services: Mapping[str, str], owner: _Owner | None) -> LabelSelector:
    if isinstance(owner, ReplicationController):
        return LabelSelector(match_labels={**services, **owner.spec.selector})
    if owner is None or owner.spec.selector is None:
        return LabelSelector(match_labels=dict(services))
    try:
        selects(owner.spec.selector, {})
    except InvalidSelector:
        return LabelSelector(match_labels=dict(services))
    return _both(services, owner.spec.selector)


def _constraint(pod: Pod, given: TopologySpreadConstraint, selector: LabelSelector | None) -> Constraint:
    pods = PodSelector.of((pod.metadata.namespace,), selector, terminating=False)
    return Constraint(
        given.topology_key,
        given.max_skew,
        1 if given.min_domains is None else given.min_domains,
        selector,
        None if selector == _EVERYTHING else pods,
        given.node_affinity_policy in (None, "Honor"),
        given.node_taints_policy == "Honor",
        selects(selector, pod.metadata.labels),
    )


def _both(labels: Mapping[str, str], selector: LabelSelector) -> LabelSelector:
    """Labels and selector at once. They may contradict each other, so one must not replace the other."""
    required = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    )
    return LabelSelector(match_labels=dict(labels), match_expressions=required + selector.match_expressions)
