"""Rules to pick one of the feasible nodes for a pod: the best by the profile's scores, or the fullest.

A picker remembers what it needs about the pods placed so far. `begin` starts a new round.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from longshore.api import Pod
from longshore.cluster import CPU, MEMORY, ClusterState, PodInfo
from longshore.cluster.arrays import Bools, Floats, Ints
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.chooser import Chooser, Placement
from longshore.planning.cost import nodes_in_use, used_share, used_shares
from longshore.planning.problem import PodToPlan


class NodePicker(Protocol):
    def begin(self) -> None:
        """Start a round, with the cluster as it was when the picker was created."""
        ...

    def pick(self, attempt: Attempt, left: Bools) -> int:
        """Return the row to use, out of the feasible rows in `left`. Raises PluginFailure."""
        ...

    def placed(self, info: PodInfo, row: int, /) -> None: ...


class ByScore:
    """Picks the node with the best score, but puts replicas of one owner on different nodes if possible.

    Pods with topology spread constraints or pod affinity follow only those.
    """

    def __init__(self, chooser: Chooser, members: Sequence[PodToPlan]) -> None:
        self._chooser = chooser
        self._before = _replicas(chooser.cluster, members)
        self._now: dict[str, Bools] = {}

    def begin(self) -> None:
        self._now = {owner: rows.copy() for owner, rows in self._before.items()}

    def pick(self, attempt: Attempt, left: Bools) -> int:
        if self._now and (replicas := self._now.get(_owner(attempt.pod.pod))) is not None:
            taken = left & replicas
            apart = left ^ taken
            # Otherwise the rows are passed on unchanged, which is faster.
            if taken.any() and apart.any():
                left = apart
        return _best(self._chooser, attempt, left)

    def placed(self, info: PodInfo, row: int, /) -> None:
        if self._now and (replicas := self._now.get(_owner(info.pod))) is not None:
            replicas[row] = True


class Fullest:
    """Picks the fullest feasible node; if only unused ones are feasible, the one with the most room."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._cluster = chooser.cluster
        self._in_use = nodes_in_use(self._cluster)
        self._before = np.where(self._in_use, 1 + used_shares(self._cluster), _room(self._cluster))
        self._now = self._before

    def begin(self) -> None:
        self._now = self._before.copy()

    def pick(self, attempt: Attempt, left: Bools) -> int:
        ranks = np.where(left, self._now, -1.0)
        best = ranks == ranks.max()
        if np.count_nonzero(best) == 1:
            return int(best.argmax())
        return _best(self._chooser, attempt, best)

    def placed(self, _info: PodInfo, row: int, /) -> None:
        self._now[row] = 1 + used_share(self._cluster, row)


def _best(chooser: Chooser, attempt: Attempt, left: Bools) -> int:
    placement = chooser.choose(attempt, left)
    if not isinstance(placement, Placement):
        raise TypeError("no node was chosen, although some are feasible")
    return placement.row


def _replicas(cluster: ClusterState, members: Sequence[PodToPlan]) -> dict[str, Bools]:
    """Return, for each owner of pods of the set, the rows on which it already has a pod."""
    found = {owner: np.zeros(len(cluster.known), np.bool_) for m in members if (owner := _owner(m.info.pod))}
    if found:
        for row in np.flatnonzero(cluster.known).tolist():
            for info in cluster.pods_on(row):
                meta = info.pod.metadata
                for reference in meta.owner_references:
                    if reference.uid in found and meta.deletion_timestamp is None:
                        found[reference.uid][row] = True
    return found


def _owner(pod: Pod) -> str:
    """Return the UID of the controller whose pods should be kept apart, or an empty text."""
    affinity = pod.spec.affinity
    if pod.spec.topology_spread_constraints or (affinity is not None and affinity.pod_affinity is not None):
        return ""
    return next((owner.uid for owner in pod.metadata.owner_references if owner.controller), "")


def _room(cluster: ClusterState) -> Floats:
    """Return the free cpu or memory of each node, whichever is less, as a share of the largest node's."""

    def free(column: int) -> Floats:
        offered: Ints = cluster.allocatable[column]
        left: Floats = np.maximum(offered - cluster.requested[column], 0) / (offered.max(initial=0) + 1)
        return left

    return np.minimum(free(CPU), free(MEMORY))
