"""Which of the nodes that will do a pod of the set takes: the best by the profile's scores, or the fullest.

A way remembers what it needs about the pods placed so far; `begin` makes it forget a round of placing.
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
from longshore.planning.problem import Member


class Way(Protocol):
    def begin(self) -> None:
        """A round begins, on the cluster as it was when the way was made."""
        ...

    def pick(self, attempt: Attempt, left: Bools) -> int:
        """The row to take, of those that will do. Raises PluginFailure."""
        ...

    def placed(self, info: PodInfo, row: int, /) -> None: ...


class ByScore:
    """As any pod is placed, but replicas of one owner come to different nodes as long as there are any.

    Pods that say themselves how they are to be spread, or whom they want to be near, go by that alone.
    """

    def __init__(self, chooser: Chooser, members: Sequence[Member]) -> None:
        self._chooser = chooser
        self._before = _replicas(chooser.cluster, members)
        self._now: dict[str, Bools] = {}

    def begin(self) -> None:
        self._now = {owner: rows.copy() for owner, rows in self._before.items()}

    def pick(self, attempt: Attempt, left: Bools) -> int:
        if self._now and (replicas := self._now.get(_owner(attempt.pod.pod))) is not None:
            taken = left & replicas
            apart = left ^ taken
            # Where there is nothing to choose, the rows are given as they are: that is quicker.
            if taken.any() and apart.any():
                left = apart
        return _best(self._chooser, attempt, left)

    def placed(self, info: PodInfo, row: int, /) -> None:
        if self._now and (replicas := self._now.get(_owner(info.pod))) is not None:
            replicas[row] = True


class Fullest:
    """On the fullest node that will do; of those that carry no pods yet, on the roomiest."""

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
        raise TypeError("some nodes were left, and none was chosen")
    return placement.row


def _replicas(cluster: ClusterState, members: Sequence[Member]) -> dict[str, Bools]:
    """The rows where each owner of pods of the set has a pod already."""
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
    """The UID of the controller whose pods are to be kept apart; empty if there is none."""
    affinity = pod.spec.affinity
    if pod.spec.topology_spread_constraints or (affinity is not None and affinity.pod_affinity is not None):
        return ""
    return next((owner.uid for owner in pod.metadata.owner_references if owner.controller), "")


def _room(cluster: ClusterState) -> Floats:
    """How much is free on each node, below 1: of cpu or memory, by what the largest node offers of it."""

    def free(column: int) -> Floats:
        offered: Ints = cluster.allocatable[column]
        left: Floats = np.maximum(offered - cluster.requested[column], 0) / (offered.max(initial=0) + 1)
        return left

    return np.minimum(free(CPU), free(MEMORY))
