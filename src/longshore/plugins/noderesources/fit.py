"""NodeResourcesFit: the node must have enough of every resource that the pod requests.

The scoring strategy decides whether emptier nodes or fuller ones are better, or specifies a function of its
own.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from longshore.api import Node, Pod
from longshore.cluster import PODS, Nodes, PodInfo
from longshore.cluster.resources import FIXED_COLUMNS, allocatable_amounts
from longshore.config.arguments import ScoringStrategy
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn
from longshore.plugins.noderesources.scoring import (
    FIXED,
    Amount,
    Rating,
    ScoredRequest,
    Use,
    free_share,
    scored_requests,
    shaped,
    used_share,
    uses,
    weighted_mean,
    weighted_mean_of_rated,
)

NAME = "NodeResourcesFit"
REASON_TOO_MANY_PODS = "Too many pods"
REASON_INSUFFICIENT = "Insufficient {resource}"

_FILTER = f"{NAME}/filter"
_SCORE = f"{NAME}/score"


class NodeResourcesFit:
    """Filter: the node has enough free resources. Score: the share that stays free, or that is used."""

    name = NAME
    scope = Scope.PODS

    def __init__(
        self,
        *,
        ignored_resources: Collection[str] = (),
        ignored_resource_groups: Collection[str] = (),
        scoring_strategy: ScoringStrategy = ScoringStrategy(),  # noqa: B008 - it is frozen
    ) -> None:
        self._ignored = frozenset(ignored_resources)
        self._ignored_groups = frozenset(ignored_resource_groups)
        self._scored = scoring_strategy.resources
        self._mean, self._rating = _scorer(scoring_strategy)
        self.wakes_on = (
            WakeOn(
                Resource.POD,
                Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
                self._room_was_freed,
                by_shape=True,
            ),
            WakeOn(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
                self._node_has_more_room,
                by_shape=True,
            ),
        )

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        wanted = state.memo.get(_FILTER)
        if wanted is None:
            wanted = state.memo[_FILTER] = self._wanted(pod)
        allocatable, requested = nodes.allocatable, nodes.requested
        for resource, fixed, amount, reason in wanted:
            column = nodes.cluster.column(resource) if fixed is None else fixed
            if column is None:
                yield Rejection(reason, where=True, unresolvable=True)
                continue
            capacity = allocatable[column]
            short = amount > capacity - requested[column]
            # Usually every node has enough.
            if not (short if isinstance(short, bool) else short.any()):
                continue
            # Eviction helps against too many pods, even if the node allows none at all.
            yield Rejection(reason, short, amount > capacity if column != PODS else False)

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Amount:
        requests = state.memo.get(_SCORE)
        if requests is None:
            requests = state.memo[_SCORE] = self._requests(pod)
        return self._mean(uses(requests, nodes, nonzero=True), self._rating)

    def _wanted(self, pod: PodInfo) -> list[tuple[str, int | None, int, str]]:
        """Return what must be free: each resource, its column if that is fixed, the amount, and a reason."""
        others = sorted(set(pod.requests).difference(FIXED_COLUMNS))
        return [
            (resource, FIXED.get(resource), pod.requests[resource], _reason(resource))
            for resource in (*FIXED_COLUMNS, *others)
            if resource in pod.requests and not self._ignores(resource)
        ]

    def _ignores(self, resource: str) -> bool:
        return _is_extended(resource) and (
            resource in self._ignored or resource.partition("/")[0] in self._ignored_groups
        )

    def _requests(self, pod: PodInfo) -> list[ScoredRequest]:
        if pod.pod.spec.resources is None:
            cpu, memory = pod.nonzero
            return scored_requests(self._scored, {**pod.requests, "cpu": cpu, "memory": memory})
        # kube-scheduler 1.36 ignores pod-level requests in this score.
        bare = msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(pod.pod.spec, resources=None))
        by_container = PodInfo.of(bare)
        cpu, memory = by_container.nonzero
        return scored_requests(self._scored, {**by_container.requests, "cpu": cpu, "memory": memory})

    def _room_was_freed(self, pod: Pod, old: Pod, new: Pod | None) -> bool:
        if new is None:
            return bool(old.spec.node_name or old.status.nominated_node_name)
        if new.metadata.uid == pod.metadata.uid:
            return True
        if not new.spec.node_name:
            return False
        before, after = PodInfo.of(old).requests, PodInfo.of(new).requests
        return any(before.get(r, 0) > after.get(r, 0) for r in PodInfo.of(pod).requests)

    def _node_has_more_room(self, pod: Pod, old: Node | None, new: Node) -> bool:
        """Whether the pod would fit on the empty node, and a resource that it requests has grown."""
        wanted = self._wanted(PodInfo.of(pod))
        offered = allocatable_amounts(new.status.allocatable)
        if any(amount > offered.get(resource, 0) for resource, _, amount, _ in wanted):
            return False
        before = {} if old is None else allocatable_amounts(old.status.allocatable)
        return any(offered[resource] > before.get(resource, 0) for resource, *_ in wanted)


def _scorer(strategy: ScoringStrategy) -> tuple[Callable[[Iterator[Use], Rating], Amount], Rating]:
    match strategy.type:
        case "LeastAllocated":
            return weighted_mean, free_share
        case "MostAllocated":
            return weighted_mean, used_share
        case "RequestedToCapacityRatio":
            return weighted_mean_of_rated, shaped(strategy.shape)


def _reason(resource: str) -> str:
    return REASON_TOO_MANY_PODS if resource == "pods" else REASON_INSUFFICIENT.format(resource=resource)


def _is_extended(resource: str) -> bool:
    """Whether the resource is an extended resource: not one of Kubernetes' own."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")
