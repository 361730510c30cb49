"""What a plan costs, and how little any plan must cost: one class for each objective.

Bounds are cheap ones. They look at amounts alone: whatever keeps pods from nodes besides can only make plans
dearer. They are about the cluster as it was before the plan, and about plans that place every pod of the set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from longshore.cluster import CPU, MEMORY, PODS, ClusterState, PodInfo
from longshore.cluster.arrays import Bools, Floats, Ints
from longshore.planning.problem import Objective

# Columns by their names in requests. More of them would make the bound of Pack better, and seldom so.
_NAMES = {"cpu": CPU, "memory": MEMORY}
# Taken off where fractions are computed with: no bound may pass the cost by a rounding error.
_ROUNDING = 1e-9
# Controllers that put a pod on every node: these pods do not tell whether a node is in use.
_EVERYWHERE = ("DaemonSet", "Node")


class Cost(Protocol):
    """Made of the cluster as it is without any pod of the set; `present` is what it costs like that."""

    present: float

    def now(self, rows: Iterable[int]) -> float:
        """With the pods of the set placed in these rows, on the cluster as it is now."""
        ...

    def bound(self, pods: Sequence[PodInfo]) -> float:
        """No plan that places all of these pods costs less. To be asked before they are placed."""
        ...


class HighestShare:
    """The largest share of cpu or memory, from 0 to 1, that is asked for on any node.

    Nodes that are cordoned count only if the plan uses them.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.present = self.now(())

    def now(self, rows: Iterable[int]) -> float:
        counted = self._cluster.known & ~self._cluster.unschedulable
        counted[list(rows)] = True
        return float(used_shares(self._cluster)[counted].max(initial=0.0))

    def bound(self, pods: Sequence[PodInfo]) -> float:
        least = self.present
        known = self._cluster.known
        for name, column in _NAMES.items():
            amounts = [info.requests.get(name, 0) for info in pods]
            offered = self._cluster.allocatable[column][known]
            used = self._cluster.requested[column][known]
            most = max(amounts, default=0)
            level = max(_water_level(offered, used, sum(amounts)), _least_with(offered, used, most))
            least = max(least, min(level, 1.0) - _ROUNDING)
        return least


class NodesInUse:
    """How many nodes carry a pod, not counting those of DaemonSets and of the nodes themselves."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._in_use = nodes_in_use(cluster)
        self.present = self.now(())

    def now(self, rows: Iterable[int]) -> float:
        used = self._in_use.copy()
        used[list(rows)] = True
        return float(np.count_nonzero(used))

    def bound(self, pods: Sequence[PodInfo]) -> float:
        opened = 0
        for name, column in {"pods": PODS, **_NAMES}.items():
            demand = sum(info.requests.get(name, 0) for info in pods) * (1 - _ROUNDING)
            free = np.maximum(self._cluster.allocatable[column] - self._cluster.requested[column], 0.0)
            lacking = demand - float(free[self._in_use].sum())
            if lacking > 0:
                # The roomiest first: fewer will not hold it.
                room = np.sort(free[self._cluster.known & ~self._in_use])[::-1].cumsum()
                opened = max(opened, min(int(np.searchsorted(room, lacking)) + 1, len(room)))
        return self.present + opened


COSTS: Mapping[Objective, Callable[[ClusterState], Cost]] = {"Balance": HighestShare, "Pack": NodesInUse}


def used_shares(cluster: ClusterState) -> Floats:
    """Of each row, the larger share of cpu and memory that its pods ask for, at most 1."""
    return np.maximum(*(_shares(cluster.requested[c], cluster.allocatable[c]) for c in _NAMES.values()))


def used_share(cluster: ClusterState, row: int) -> float:
    """The same of a single row."""
    offered, used, _ = cluster.amounts(row)
    return max(min(used[c] / offered[c], 1.0) if offered[c] else float(used[c] > 0) for c in _NAMES.values())


def nodes_in_use(cluster: ClusterState) -> Bools:
    """The rows of nodes that carry a pod which might as well be elsewhere."""
    in_use: Bools = cluster.known & (cluster.requested[PODS] > 0)
    for row in np.flatnonzero(in_use).tolist():
        in_use[row] = any(not _is_everywhere(info) for info in cluster.pods_on(row))
    return in_use


def _is_everywhere(info: PodInfo) -> bool:
    return any(owner.controller and owner.kind in _EVERYWHERE for owner in info.pod.metadata.owner_references)


def _shares(used: Ints, offered: Ints) -> Floats:
    shares: Floats = np.minimum(used / np.maximum(offered, 1), 1.0)
    return np.where(offered > 0, shares, np.sign(used).astype(np.float64))


def _water_level(offered: Ints, used: Ints, demand: int) -> float:
    """The share up to which nodes have to be filled until all of the demand is in; 1 if it does not fit."""
    offered, used = offered[offered > 0], used[offered > 0]
    if not demand or not len(offered):
        return float(demand > 0)
    # Nodes join from the emptiest on, as the level rises.
    order = np.argsort(used / offered)
    offered, used = offered[order], used[order]
    levels = (used.cumsum(dtype=np.float64) + demand) / offered.cumsum(dtype=np.float64)
    # More nodes lower it, down to those that are fuller and hold none of the demand.
    return float(levels.min())


def _least_with(offered: Ints, used: Ints, amount: int) -> float:
    """The pod that asks for most has to be somewhere."""
    if not amount:
        return 0.0
    shares = _shares(used + amount, offered)
    return float(shares.min(initial=1.0))
