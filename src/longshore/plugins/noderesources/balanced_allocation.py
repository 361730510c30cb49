"""NodeResourcesBalancedAllocation: no resource of a node should run out long before the others.

The balance is measured by the deviation between the used shares of the resources. A node is scored by whether
the pod makes its balance better or worse.
"""

from functools import partial
from itertools import combinations

import numpy as np

from longshore.cluster import Nodes, OneNode, PodInfo
from longshore.cluster.cached_column import CachedColumn
from longshore.config.arguments import NodeResourcesBalancedAllocationArgs, ResourceSpec
from longshore.framework import MAX_SCORE, SKIP, CycleState, Scope, Status
from longshore.plugins.noderesources.scoring import (
    Amount,
    ScoredRequest,
    at_most,
    scored_requests,
    truncated,
    uses,
)

NAME = "NodeResourcesBalancedAllocation"

_CPU_AND_MEMORY = NodeResourcesBalancedAllocationArgs().resources
_HALF = MAX_SCORE // 2


class NodeResourcesBalancedAllocation:
    """Score: 75 if the pod does not change the balance, up to 100 if it improves it, down to 50."""

    name = NAME
    scope = Scope.PODS

    def __init__(self, *, resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY) -> None:
        self._resources = resources
        self._before: dict[tuple[str, ...], CachedColumn] = {}

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        # A pod without requests changes no balance, so all such pods would go to the same best node.
        return None if any(amount for *_, amount in self._requests(state, pod)) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Amount:
        requests = self._requests(state, pod)
        if isinstance(nodes, OneNode) and (score := _score_of_one(requests, nodes)) is not None:
            return score
        gain = _balance(requests, nodes) - self._balance_before(requests, nodes)
        # Half of it, rounded down.
        return _HALF + (_HALF + gain >> 1)

    def _balance_before(self, requests: list[ScoredRequest], nodes: Nodes) -> Amount:
        """Return the balance without the pod. It is cached for all nodes: all pods share it."""
        without = [(resource, column, weight, 0) for resource, column, weight, _ in requests]
        if (
            not isinstance(nodes.rows, slice)
            or len(requests) < 2
            or any(fixed is None for _, fixed, *_ in requests)
        ):
            return _balance(without, nodes)
        key = tuple(resource for resource, *_ in requests)
        kept = self._before.get(key)
        if kept is None:
            kept = self._before[key] = CachedColumn(partial(_balance, without))
        return kept.of(nodes)

    def _requests(self, state: CycleState, pod: PodInfo) -> list[ScoredRequest]:
        requests: list[ScoredRequest] | None = state.memo.get(NAME)
        if requests is None:
            requests = state.memo[NAME] = scored_requests(self._resources, pod.requests)
        return requests


def _balance(requests: list[ScoredRequest], nodes: Nodes) -> Amount:
    """Return how evenly the resources are used with the pod on the node, from MAX_SCORE / 2 to MAX_SCORE."""
    offered: list[Amount] = []
    shares: list[Amount] = []
    for _, offer, used, amount in uses(requests, nodes, nonzero=False):
        offered.append(offer.everywhere or offer.amount > 0)
        shares.append(offer.share(at_most(used + amount if amount else used, offer.amount)))
    if len(shares) < 2:
        return MAX_SCORE
    deviation = _half_difference(offered, shares) if len(shares) == 2 else _deviation(offered, shares)
    return truncated((1 - deviation) * MAX_SCORE)


def _score_of_one(requests: list[ScoredRequest], node: OneNode) -> int | None:
    """Return the score of a single node for two resources, or None if this is not the case.

    This is a fast path for the usual case: after each placement, one node has to be scored again.
    """
    if len(requests) != 2:
        return None
    (_, first, _, more), (_, second, _, more_of_second) = requests
    if first is None or second is None:
        return None
    capacity, capacity_of_second = node.allocatable[first], node.allocatable[second]
    if not capacity or not capacity_of_second:
        return None
    used, used_of_second = node.requested[first], node.requested[second]
    before = (
        at_most(used, capacity) / capacity - at_most(used_of_second, capacity_of_second) / capacity_of_second
    )
    used, used_of_second = used + more, used_of_second + more_of_second
    after = (
        at_most(used, capacity) / capacity - at_most(used_of_second, capacity_of_second) / capacity_of_second
    )
    gain = int((1 - abs(after) / 2) * MAX_SCORE) - int((1 - abs(before) / 2) * MAX_SCORE)
    return _HALF + (_HALF + gain >> 1)


def _half_difference(offered: list[Amount], shares: list[Amount]) -> Amount:
    """Return the standard deviation of two shares."""
    difference = abs(shares[0] - shares[1]) / 2
    both = offered[0] & offered[1]
    return difference if both is True else difference * both


def _deviation(offered: list[Amount], shares: list[Amount]) -> Amount:
    """Return the standard deviation over the resources that a node offers.

    The shares are added one by one, because the last digit can decide and Python's `sum` is more exact than
    kube-scheduler.
    """
    count: Amount = 0
    total: Amount = 0.0
    for has, share in zip(offered, shares, strict=True):
        count += has
        total += share
    divisor = count + (count == 0)
    mean = total / divisor
    squares: Amount = 0.0
    for has, share in zip(offered, shares, strict=True):
        squares += (share - mean) * (share - mean) * has
    # If two are offered, the result is half their difference, exact to the last digit; other pairs add 0.
    of_two: Amount = 0.0
    for a, b in combinations(range(len(shares)), 2):
        of_two += _half_difference([offered[a], offered[b]], [shares[a], shares[b]])
    return np.sqrt(squares / divisor) * (count > 2) + of_two * (count == 2)
