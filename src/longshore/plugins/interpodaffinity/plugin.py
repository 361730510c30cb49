"""InterPodAffinity: pods that must or should run in the same topology domain as other pods, or in another.

It works in both directions: the terms of the pod count, and so do the terms of the pods on the nodes.
"""

from longshore.api import Pod
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo, Terms
from longshore.cluster.arrays import Bools, Ints
from longshore.framework import SKIP, Action, CycleState, Rejection, Resource, Scope, Status, WakeOn
from longshore.plugins.interpodaffinity.hints import node_matters, pod_matters
from longshore.plugins.interpodaffinity.scoring import Weighted, normalized, preferences, score
from longshore.plugins.interpodaffinity.terms import Incoming, Sums

NAME = "InterPodAffinity"
REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"

_SCORING = f"{NAME}/score"


class InterPodAffinity:
    """Filter: the required terms hold in both directions. Score: the sum of the weights of preferred terms.

    `hard_pod_affinity_weight` is the weight of a required affinity to this pod of a pod on a node.
    """

    name = NAME
    scope = Scope.CLUSTER

    def __init__(
        self, *, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
    ) -> None:
        self._hard_weight = hard_pod_affinity_weight
        self._ignore_existing = ignore_preferred_terms_of_existing_pods
        self.wakes_on = (
            WakeOn(
                Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, pod_matters, by_shape=True
            ),
            WakeOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, node_matters, by_shape=True),
        )

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        incoming, pod_counts, domains = Incoming.of(state, pod.pod, NAME), cluster.pod_counts, cluster.domains
        if incoming.problem:
            return Status.unresolvable(incoming.problem)
        against = pod_counts.anti_affinity_against(pod.pod)
        if not against and not incoming.required:
            return SKIP
        existing = Sums.of((domains.of(term.topology_key), tally.by_row) for term, tally in against)
        if not incoming.required and not existing:
            return SKIP
        near = far = Sums.of(())
        if incoming.companions:
            companions = pod_counts.pods(*incoming.companions).by_row
            near = Sums.of((domains.of(key), companions) for key in incoming.near)
        if incoming.terms.anti_affinity:
            far = Sums.of(
                (domains.of(term.topology_key), pod_counts.pods(term.selector).by_row)
                for term in incoming.terms.anti_affinity
            )
        state[NAME] = _Required(pod.pod, incoming, near, far, existing)
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, node: OneNode) -> None:
        required: _Required = state[NAME]
        required.change(added.pod, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, node: OneNode) -> None:
        required: _Required = state[NAME]
        required.change(removed.pod, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        required: _Required = state[NAME]
        rejections: list[Rejection] = []
        # Only the first reason of each node is reported.
        refused: Bools | None = None
        for reason, where, unresolvable in (
            (REASON_AFFINITY, required.affinity_unmet(nodes), True),
            (REASON_ANTI_AFFINITY, required.far.positive(nodes.rows), False),
            (REASON_EXISTING_ANTI_AFFINITY, required.existing.positive(nodes.rows), False),
        ):
            if where is not None:
                first = where if refused is None else where & ~refused
                refused = where if refused is None else where | refused
                rejections.append(Rejection(reason, first, unresolvable))
        return rejections

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        incoming = Incoming.of(state, pod.pod, NAME)
        if self._ignore_existing and not incoming.terms.preferred:
            return SKIP
        weighted = self._weighted(incoming.terms, pod.pod, nodes.cluster)
        sums = preferences(weighted) if weighted else None
        if sums is None:
            return SKIP
        state[_SCORING] = sums
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        sums: Sums = state[_SCORING]
        return score(sums, nodes)

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        return normalized(scores)

    def _weighted(self, terms: Terms, pod: Pod, cluster: ClusterState) -> list[Weighted]:
        pod_counts, hard = cluster.pod_counts, self._hard_weight
        required = pod_counts.affinity_towards(pod) if hard else []
        preferred = pod_counts.preferences_about(pod)
        # Most pods have no terms, and no terms select them: this must be fast.
        if not required and not preferred and not terms.preferred:
            return []
        found = [(term, pod_counts.pods(term.selector), term.weight) for term in terms.preferred]
        found += [(term, tally, hard) for term, tally in required]
        found += [(term, tally, term.weight) for term, tally in preferred]
        return [
            (cluster.domains.of(term.topology_key), tally.by_row, weight)
            for term, tally, weight in found
            if tally.total
        ]


class _Required:
    """The number of pods in each domain that the required terms select, with changes of a dry run.

    `near` counts pods that match all affinity terms, `far` pods that match an anti-affinity term, and
    `existing` pods with an anti-affinity term that matches the pod.
    """

    def __init__(self, pod: Pod, incoming: Incoming, near: Sums, far: Sums, existing: Sums) -> None:
        self._pod = pod
        self._incoming = incoming
        self._near = near
        self.far = far
        self.existing = existing

    def clone(self) -> "_Required":
        sums = (self._near.copy(), self.far.copy(), self.existing.copy())
        return _Required(self._pod, self._incoming, *sums)

    def affinity_unmet(self, nodes: Nodes) -> Bools | None:
        """Return the nodes on which the affinity does not hold; None if the pod has no required affinity.

        The first pod of a group with affinity to each other may use any node that has the topology keys.
        """
        if not self._incoming.companions:
            return None
        pod_counts = nodes.cluster.pod_counts
        if not self._near and all(pod_counts.selects(s, self._pod) for s in self._incoming.companions):
            return self._near.lacking(nodes.rows)
        return self._near.missing(nodes.rows)

    def change(self, other: Pod, node: OneNode, number: int) -> None:
        """Count the other pod on the node `number` more times."""
        cluster, pod_counts, incoming = node.cluster, node.cluster.pod_counts, self._incoming
        for term in Terms.of_placed(other).anti_affinity:
            if pod_counts.selects(term.selector, self._pod):
                self.existing.change(cluster.domains.of(term.topology_key), node.row, number)
        if incoming.companions and all(pod_counts.selects(s, other) for s in incoming.companions):
            for key in incoming.near:
                self._near.change(cluster.domains.of(key), node.row, number)
        for term in incoming.terms.anti_affinity:
            if pod_counts.selects(term.selector, other):
                self.far.change(cluster.domains.of(term.topology_key), node.row, number)
