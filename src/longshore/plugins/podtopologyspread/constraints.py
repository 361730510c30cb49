"""The spread constraints of a pod: its own, or the profile's for pods that have none.

The constraints of a profile have no selector. It is derived from the Services that select the pod and from
the controller that owns it; a pod that has neither is not spread.
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

    `pods` selects the pods that count. It is None if the selector is empty: kube-scheduler then counts no
    pods, although such a selector matches all of them.
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: LabelSelector | None
    pods: PodSelector | None
    honor_affinity: bool
    honor_taints: bool
    # Whether the pod matches its own constraint.
    self_match: bool


def own_constraints(pod: Pod, action: str) -> tuple[Constraint, ...]:
    """Return the pod's own constraints, either the hard or the soft ones. Raises `InvalidSelector`."""
    return tuple(
        _constraint(pod, constraint, selector_of(constraint, pod))
        for constraint in pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == action
    )


def selector_of(constraint: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    """Return the selector of the constraint, including the pod's values of `matchLabelKeys`."""
    selector, labels = constraint.label_selector, pod.metadata.labels
    wanted = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    return selector if selector is None or not wanted else _both(wanted, selector)


class ServiceSelectors:
    """The selectors of the Services by namespace, updated when Services change."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, list[Mapping[str, str]]] = {}
        self._seen: tuple[ClusterState, int] | None = None

    def about(self, pod: Pod, cluster: ClusterState) -> dict[str, str]:
        """Return the selectors of all Services that select the pod, merged."""
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
    """Return the controller of the pod, if it is of a kind that has a pod selector."""
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
    """Return the profile's constraints for a pod without any, with the selector of its owner and Services."""
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
    """Combine labels and a selector. They may contradict each other, so neither may replace the other."""
    required = tuple(
        LabelSelectorRequirement(key=key, operator="In", values=(value,))
        for key, value in selector.match_labels.items()
    )
    return LabelSelector(match_labels=dict(labels), match_expressions=required + selector.match_expressions)
