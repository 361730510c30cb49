"""Balance: no resource of the node should run out long before the others do.

The deviation between the used shares of cpu and memory measures it. What counts is whether the pod makes the
node's balance better or worse.
"""

from itertools import combinations

import numpy as np

from longshore.cluster import Nodes, PodInfo
from longshore.framework import MAX_SCORE, SKIP, CycleState, Scope, Status
from longshore.framework.configuration.arguments import NodeResourcesBalancedAllocationArgs, ResourceSpec
from longshore.plugins.noderesources_scoring import Amount, Asked, asked_of, at_most, truncated, uses

NAME = "NodeResourcesBalancedAllocation"

_CPU_AND_MEMORY = NodeResourcesBalancedAllocationArgs().resources
_HALF = MAX_SCORE // 2


class NodeResourcesBalancedAllocation:
    """Score: 75 where the pod leaves the balance as it is, up to 100 where it betters it, down to 50."""

    name = NAME
    scope = Scope.PODS

    def __init__(self, *, resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY) -> None:
        self._resources = resources

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        # The best node of a pod without requests stays the best: all of its kind would gather there.
        return None if any(amount for *_, amount in self._asked(state, pod)) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Amount:
        offered: list[Amount] = []
        before: list[Amount] = []
        after: list[Amount] = []
        for _, capacity, used, amount in uses(self._asked(state, pod), nodes, nonzero=False):
            divisor = capacity + (capacity == 0)
            offered.append(capacity > 0)
            before.append(at_most(used, capacity) / divisor)
            after.append(at_most(used + amount, capacity) / divisor)
        gain = _balance(offered, after) - _balance(offered, before)
        return _HALF + (_HALF + gain) // 2

    def _asked(self, state: CycleState, pod: PodInfo) -> list[Asked]:
        asked: list[Asked] | None = state.memo.get(NAME)
        if asked is None:
            asked = state.memo[NAME] = asked_of(self._resources, pod.requests)
        return asked


def _balance(offered: list[Amount], shares: list[Amount]) -> Amount:
    """From MAX_SCORE / 2 to MAX_SCORE, given the used share of each resource, 0 where it is not offered."""
    if len(shares) < 2:
        return MAX_SCORE
    deviation = _half_difference(offered, shares) if len(shares) == 2 else _deviation(offered, shares)
    return truncated((1 - deviation) * MAX_SCORE)


def _half_difference(offered: list[Amount], shares: list[Amount]) -> Amount:
    """The standard deviation of two."""
    return abs(shares[0] - shares[1]) / 2 * (offered[0] & offered[1])


def _deviation(offered: list[Amount], shares: list[Amount]) -> Amount:
    """The standard deviation over the resources that a node offers.

    Added up one by one: the last digit can decide, and Python's `sum` is more exact than kube-scheduler.
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
    # Where two are offered it is their half difference, to the last digit; the other pairs add nothing then.
    of_two: Amount = 0.0
    for a, b in combinations(range(len(shares)), 2):
        of_two += _half_difference([offered[a], offered[b]], [shares[a], shares[b]])
    return np.sqrt(squares / divisor) * (count > 2) + of_two * (count == 2)
