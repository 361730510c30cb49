"""Balance: no resource of the node should run out long before the others do.

The deviation between the used shares of cpu and memory measures it. What counts is whether the pod makes the
node's balance better or worse.
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
    Asked,
    asked_of,
    at_most,
    truncated,
    uses,
)

NAME = "NodeResourcesBalancedAllocation"

_CPU_AND_MEMORY = NodeResourcesBalancedAllocationArgs().resources
_HALF = MAX_SCORE // 2


class NodeResourcesBalancedAllocation:
    """Score: 75 where the pod leaves the balance as it is, up to 100 where it betters it, down to 50."""

    name = NAME
    scope = Scope.PODS

    def __init__(self, *, resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY) -> None:
        self._resources = resources
        self._before: dict[tuple[str, ...], CachedColumn] = {}

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status | None:
        # The best node of a pod without requests stays the best: all of its kind would gather there.
        return None if any(amount for *_, amount in self._asked(state, pod)) else SKIP

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Amount:
        asked = self._asked(state, pod)
        if isinstance(nodes, OneNode) and (score := _score_of_one(asked, nodes)) is not None:
            return score
        gain = _balance(asked, nodes) - self._balance_before(asked, nodes)
        # Half of it, rounded down.
        return _HALF + (_HALF + gain >> 1)

    def _balance_before(self, asked: list[Asked], nodes: Nodes) -> Amount:
        """Whatever the pod asks for: over all nodes it is worked out for all pods together."""
        without = [(resource, column, weight, 0) for resource, column, weight, _ in asked]
        if (
            not isinstance(nodes.rows, slice)
            or len(asked) < 2
            or any(fixed is None for _, fixed, *_ in asked)
        ):
            return _balance(without, nodes)
        key = tuple(resource for resource, *_ in asked)
        kept = self._before.get(key)
        if kept is None:
            kept = self._before[key] = CachedColumn(partial(_balance, without))
        return kept.of(nodes)

    def _asked(self, state: CycleState, pod: PodInfo) -> list[Asked]:
        asked: list[Asked] | None = state.memo.get(NAME)
        if asked is None:
            asked = state.memo[NAME] = asked_of(self._resources, pod.requests)
        return asked


def _balance(asked: list[Asked], nodes: Nodes) -> Amount:
    """From MAX_SCORE / 2 to MAX_SCORE: how evenly the resources would be used with the pod on the node."""
    offered: list[Amount] = []
    shares: list[Amount] = []
    for _, offer, used, amount in uses(asked, nodes, nonzero=False):
        offered.append(offer.everywhere or offer.amount > 0)
        shares.append(offer.share(at_most(used + amount if amount else used, offer.amount)))
    if len(shares) < 2:
        return MAX_SCORE
    deviation = _half_difference(offered, shares) if len(shares) == 2 else _deviation(offered, shares)
    return truncated((1 - deviation) * MAX_SCORE)


def _score_of_one(asked: list[Asked], node: OneNode) -> int | None:
    """The same for a single node with two resources, as it mostly is; None if it is another case.

    After each placement one node is scored anew, and this is most of the work.
    """
    if len(asked) != 2:
        return None
    (_, first, _, more), (_, second, _, more_of_second) = asked
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
    """The standard deviation of two."""
    difference = abs(shares[0] - shares[1]) / 2
    both = offered[0] & offered[1]
    return difference if both is True else difference * both


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
