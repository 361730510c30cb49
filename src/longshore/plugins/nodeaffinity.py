"""NodeAffinity: the nodes that a pod, or the profile for all of its pods, requires or prefers."""

from collections.abc import Iterable, Set

import numpy as np

from longshore.api import Node, NodeSelector, NodeSelectorTerm, Pod, PreferredSchedulingTerm, has_labels
from longshore.api import NodeAffinity as Affinity
from longshore.cluster import ClusterState, Nodes, PodInfo
from longshore.cluster.arrays import Ints
from longshore.cluster.labels import NAME_FIELD
from longshore.cluster.node_selectors import selects_node
from longshore.framework import SKIP, Action, CycleState, Rejection, Resource, Scope, Status, WakeOn
from longshore.framework.normalize import by_largest

NAME = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"

_NO_AFFINITY = Affinity()


class NodeAffinity:
    """Filter: the node has the required labels and name. Score: the sum of the weights of met preferences.

    `added_affinity` is the affinity of the profile, in addition to that of each pod.
    """

    name = NAME
    scope = Scope.NODE

    def __init__(self, *, added_affinity: Affinity | None = None) -> None:
        added = added_affinity or _NO_AFFINITY
        self._enforced = added.required_during_scheduling_ignored_during_execution
        self._preferred = added.preferred_during_scheduling_ignored_during_execution
        self.wakes_on = (
            WakeOn(
                Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._node_came_to_match, by_shape=True
            ),
        )

    def concerns(self, pod: PodInfo) -> bool:
        return bool(
            self._enforced is not None
            or self._preferred
            or pod.pod.spec.node_selector
            or _affinity(pod.pod) is not _NO_AFFINITY
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | Set[str] | None:
        required = _required(pod.pod)
        if required is None:
            return SKIP if self._enforced is None and not pod.pod.spec.node_selector else None
        names = _named(required.node_selector_terms)
        return Status.unresolvable(REASON_CONFLICT) if names is not None and not names else names

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        labels, rows = nodes.cluster.labels, nodes.rows
        matching = labels.matches_all(pod.pod.spec.node_selector, rows)
        required = _required(pod.pod)
        if required is not None:
            matching &= labels.matches_selector(required, rows)
        if self._enforced is not None:
            allowed = labels.matches_selector(self._enforced, rows)
            yield Rejection(REASON_ENFORCED, ~allowed, unresolvable=True)
            # A node that the profile rules out gets only that reason.
            matching |= ~allowed
        yield Rejection(REASON, ~matching, unresolvable=True)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        return None if self._preferences(pod.pod) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        labels, rows = nodes.cluster.labels, nodes.rows
        total: Ints = np.zeros(len(nodes), np.int64)
        for term in self._preferences(pod.pod):
            total += term.weight * labels.matches_term(term.preference, rows)
        return total

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        return by_largest(scores)

    def _preferences(self, pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
        return self._preferred + _affinity(pod).preferred_during_scheduling_ignored_during_execution

    def _node_came_to_match(self, pod: Pod, old: Node | None, new: Node) -> bool:
        return self._accepts(pod, new) and (old is None or not self._accepts(pod, old))

    def _accepts(self, pod: Pod, node: Node) -> bool:
        required = _required(pod)
        return (
            has_labels(pod.spec.node_selector, node.metadata.labels)
            and (required is None or selects_node(required, node))
            and (self._enforced is None or selects_node(self._enforced, node))
        )


def _affinity(pod: Pod) -> Affinity:
    affinity = pod.spec.affinity
    return _NO_AFFINITY if affinity is None or affinity.node_affinity is None else affinity.node_affinity


def _required(pod: Pod) -> NodeSelector | None:
    return _affinity(pod).required_during_scheduling_ignored_during_execution


def _named(terms: tuple[NodeSelectorTerm, ...]) -> Set[str] | None:
    """Return the names that the terms allow, or None if one of the terms does not restrict the name."""
    names: set[str] = set()
    for term in terms:
        named = [
            set(requirement.values)
            for requirement in term.match_fields
            if requirement.key == NAME_FIELD and requirement.operator == "In"
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return names if terms else None
