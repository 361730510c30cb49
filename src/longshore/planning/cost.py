"""The cost of a plan and a lower bound for it, with one class for each objective.

The bounds are quick to compute. They consider only amounts: other constraints can only make plans more
expensive. They are computed for the cluster before the plan, and hold for plans that place every pod of the
set.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from longshore.cluster import CPU, MEMORY, PODS, ClusterState, PodInfo
from longshore.cluster.arrays import Bools, Floats, Ints
from longshore.planning.problem import Objective

# Columns by their names in requests. More resources would rarely improve the bound of Pack.
_NAMES = {"cpu": CPU, "memory": MEMORY}
# Subtracted from fractions, so that no bound exceeds the cost by a rounding error.
_ROUNDING = 1e-9
# Controllers that put a pod on every node. Their pods do not mean that a node is in use.
_EVERYWHERE = ("DaemonSet", "Node")


class Cost(Protocol):
    """The cost for one objective. Create it before any pod is placed; `present` is the cost then."""

    present: float

    def now(self, rows: Iterable[int]) -> float:
        """Return the cost of the cluster as it is now, with the pods of the set placed in these rows."""
        ...

    def bound(self, pods: Sequence[PodInfo]) -> float:
        """Return a lower bound for the cost of placing all of these pods. Call it before placing any."""
        ...


class HighestShare:
    """The largest share of cpu or memory, from 0 to 1, that is requested on any node.

    Cordoned nodes count only if the plan uses them.
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
    """The number of nodes with pods, not counting pods of DaemonSets and static pods."""

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
                # Starting with the nodes that have the most room: no fewer nodes are enough.
                room = np.sort(free[self._cluster.known & ~self._in_use])[::-1].cumsum()
                opened = max(opened, min(int(np.searchsorted(room, lacking)) + 1, len(room)))
        return self.present + opened


COSTS: Mapping[Objective, Callable[[ClusterState], Cost]] = {"Balance": HighestShare, "Pack": NodesInUse}


def used_shares(cluster: ClusterState) -> Floats:
    """Return the share of cpu or memory, whichever is larger, that the pods of each row request, up to 1."""
    return np.maximum(*(_shares(cluster.requested[c], cluster.allocatable[c]) for c in _NAMES.values()))


def used_share(cluster: ClusterState, row: int) -> float:
    """Return the `used_shares` of a single row."""
    offered, used, _ = cluster.amounts(row)
    return max(min(used[c] / offered[c], 1.0) if offered[c] else float(used[c] > 0) for c in _NAMES.values())


def nodes_in_use(cluster: ClusterState) -> Bools:
    """Return true for the nodes that have a pod which could also run elsewhere."""
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
    """Return the share to which nodes must be filled to hold all of the demand; 1 if there are no nodes."""
    offered, used = offered[offered > 0], used[offered > 0]
    if not demand or not len(offered):
        return float(demand > 0)
    # As the level rises, it reaches more nodes, beginning with the emptiest.
    order = np.argsort(used / offered)
    offered, used = offered[order], used[order]
    levels = (used.cumsum(dtype=np.float64) + demand) / offered.cumsum(dtype=np.float64)
    # Each further node lowers the level, until only nodes are left that are fuller than that.
    return float(levels.min())


def _least_with(offered: Ints, used: Ints, amount: int) -> float:
    """Return the lowest share that any node has after it takes a pod with this request."""
    if not amount:
        return 0.0
    shares = _shares(used + amount, offered)
    return float(shares.min(initial=1.0))
