"""PodTopologySpread: distributes the pods of a workload evenly over zones, nodes, or other domains.

The skew of a domain is how many more matching pods it has than the domain with the fewest. A hard constraint
excludes nodes on which the pod would make the skew too large; a soft one prefers domains with few matching
pods.
"""

from collections.abc import Sequence
from typing import Literal

from longshore.api import InvalidSelector, Node, Pod, TopologySpreadConstraint, selects
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.framework import SKIP, Action, CycleState, Rejection, Resource, Scope, Status, WakeOn
from longshore.plugins.podtopologyspread.constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    ServiceSelectors,
    owner_kind,
    selector_of,
)
from longshore.plugins.podtopologyspread.counts import Count, Counts, Spread, Spreads
from longshore.plugins.podtopologyspread.scoring import Scoring, normalized

NAME = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON} (missing required label)"

_SCORING = f"{NAME}/{SOFT}"
_MEMO = {action: f"{NAME}/{action}" for action in (HARD, SOFT)}


class PodTopologySpread:
    """Filter: the hard constraints hold. Score: few matching pods in the domains of the soft constraints.

    Pods without constraints get `default_constraints` if `defaulting_type` is List. With System they get two
    soft ones, over nodes and over zones.
    """

    name = NAME
    scope = Scope.CLUSTER

    def __init__(
        self,
        *,
        default_constraints: Sequence[TopologySpreadConstraint] = (),
        defaulting_type: Literal["System", "List"] = "System",
    ) -> None:
        self._system = defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if self._system else tuple(default_constraints)
        self._services = ServiceSelectors()
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        self.wakes_on = (
            WakeOn(Resource.POD, pods, self._pod_matters, by_shape=True),
            WakeOn(Resource.NODE, nodes, self._node_matters, by_shape=True),
        )

    def concerns(self, pod: PodInfo) -> bool:
        # Default constraints apply only to pods with labels, which Services can select, or with a known
        # owner.
        return bool(pod.pod.spec.topology_spread_constraints) or bool(
            self._defaults and (pod.pod.metadata.labels or owner_kind(pod.pod))
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        try:
            spreads = self._spreads(HARD, state, pod.pod, cluster)
        except InvalidSelector as error:
            return Status.error(str(error))
        if not spreads:
            return SKIP
        state[NAME] = Counts([Count(spread, spread.sums(cluster)) for spread in spreads])
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> None:
        counts: Counts = state[NAME]
        counts.change(pod.pod, added.pod, node.row, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> None:
        counts: Counts = state[NAME]
        counts.change(pod.pod, removed.pod, node.row, -1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        counts: Counts = state[NAME]
        rejections: list[Rejection] = []
        # Only the first violated constraint of each node is reported.
        refused: Bools | None = None
        for count in counts.counts:
            found = [(REASON, count.exceeded(nodes), False)]
            if not count.spread.domains.complete:
                found.insert(0, (REASON_MISSING_LABEL, count.spread.domains.lacking(nodes.rows), True))
            for reason, where, unresolvable in found:
                first = where if refused is None else where & ~refused
                refused = where if refused is None else where | refused
                rejections.append(Rejection(reason, first, unresolvable))
        return rejections

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        try:
            spreads = self._spreads(SOFT, state, pod.pod, nodes.cluster)
        except InvalidSelector as error:
            return Status.error(str(error))
        if not spreads:
            return SKIP
        state[_SCORING] = Scoring(spreads, nodes, all_keys=self._needs_all_keys(pod.pod))
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        scoring: Scoring = state[_SCORING]
        return scoring.score(nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        scoring: Scoring = state[_SCORING]
        return normalized(scores, scoring.ignored)

    def _spreads(self, action: str, state: CycleState, pod: Pod, cluster: ClusterState) -> tuple[Spread, ...]:
        memo: Spreads | None = state.memo.get(_MEMO[action])
        if memo is None:
            memo = Spreads(pod, action, self._defaults, all_keys=self._needs_all_keys(pod))
            state.memo[_MEMO[action]] = memo
        return memo.current(pod, cluster, self._services)

    def _needs_all_keys(self, pod: Pod) -> bool:
        # With the system's default constraints, nodes without a zone count too.
        return bool(pod.spec.topology_spread_constraints) or not self._system

    def _pod_matters(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        if not all(_may_count(other, pod) for other in (old, new) if other is not None):
            return False
        hard = self._hard(pod)
        if not pod.spec.topology_spread_constraints:
            # Services and owners are not looked up here, so any pod of the namespace may count.
            return bool(hard)
        selectors = [selector_of(constraint, pod) for constraint in hard]
        if old is None or new is None:
            labels = (old or new or pod).metadata.labels
            return any(selects(selector, labels) for selector in selectors)
        tolerates_more = new.metadata.uid == pod.metadata.uid and old.spec.tolerations != new.spec.tolerations
        if tolerates_more and any(constraint.node_taints_policy == "Honor" for constraint in hard):
            return True
        before, after = old.metadata.labels, new.metadata.labels
        return any(selects(selector, before) != selects(selector, after) for selector in selectors)

    def _node_matters(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        keys = [constraint.topology_key for constraint in self._hard(pod)]
        before = _values(old, keys)
        after = _values(new, keys)
        if old is None or new is None:
            return before is not None or after is not None
        return before != after or (after is not None and old.spec.taints != new.spec.taints)

    def _hard(self, pod: Pod) -> list[TopologySpreadConstraint]:
        constraints = pod.spec.topology_spread_constraints or self._defaults
        return [constraint for constraint in constraints if constraint.when_unsatisfiable == HARD]


def _may_count(other: Pod, pod: Pod) -> bool:
    if other.metadata.uid == pod.metadata.uid:
        return True
    placed = bool(other.spec.node_name or other.status.nominated_node_name)
    return placed and other.metadata.namespace == pod.metadata.namespace


def _values(node: Node | None, keys: list[str]) -> list[str] | None:
    """Return the node's values of the keys, or None if it lacks one of them."""
    labels = {} if node is None else node.metadata.labels
    return [labels[key] for key in keys] if node is not None and all(key in labels for key in keys) else None
