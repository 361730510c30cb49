"""The problem that a planner solves: pods without nodes, the cluster, and what makes a plan good."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.arrays import Bools
from longshore.engine.decision.chooser import Chooser
from longshore.engine.decision.shapes import shape_key

Objective = Literal["Balance", "Pack"]


class Problem(msgspec.Struct, frozen=True):
    """A set of pods to find nodes for, with the plugins of `chooser` and its cluster.

    All plugins of the profile apply. One that holds the pods until they are planned must let them pass during
    planning. All nodes are examined, whatever percentage the profile specifies. HTTP extenders are not
    called.

    `objective`: "Balance" minimizes the use of the fullest node, "Pack" minimizes the number of nodes in use.
    `kept`: the node of a pod in an earlier plan, by UID, in its order. The pod stays there if possible.
    `eligible`: the names of the nodes that a pod may use, by UID. A pod without an entry may use any node.
    `all_or_nothing`: if any pod has no node, the plan leaves out all of them.
    """

    chooser: Chooser
    pods: Sequence[PodInfo]
    objective: Objective = "Balance"
    kept: Mapping[str, str] = {}
    eligible: Mapping[str, Collection[str]] = {}
    all_or_nothing: bool = False


class PodToPlan(msgspec.Struct, frozen=True):
    """A pod of the set, with what every attempt to place it needs."""

    info: PodInfo
    # The key of its shape.
    key: bytes
    # The rows that the pod may use; None means all.
    eligible: Bools | None = None
    # Equal for members with the same key and the same eligible rows.
    group: int = 0

    @property
    def uid(self) -> str:
        return self.info.pod.metadata.uid

    @property
    def name(self) -> str:
        return self.info.pod.key


def members_of(problem: Problem) -> list[PodToPlan]:
    """Return the members. Raises ValueError if a pod already has a node or comes twice."""
    cluster = problem.chooser.cluster
    groups: dict[tuple[bytes, frozenset[str] | None], tuple[int, Bools | None]] = {}
    seen: set[str] = set()
    members = []
    for info in problem.pods:
        pod = info.pod
        name = pod.key
        if pod.spec.node_name or cluster.pod(name) is not None:
            raise ValueError(f"cannot plan pod {name}: it already has a node")
        if name in seen:
            raise ValueError(f"cannot plan pod {name} twice in one set")
        seen.add(name)
        names = problem.eligible.get(pod.metadata.uid)
        kind = (shape_key(pod), None if names is None else frozenset(names))
        found = groups.get(kind)
        if found is None:
            found = groups[kind] = (len(groups), None if names is None else rows_of(cluster, names))
        members.append(PodToPlan(info, kind[0], found[1], found[0]))
    return members


def rows_of(cluster: ClusterState, names: Collection[str]) -> Bools:
    """Return a mask of the rows of the nodes with these names. Unknown names are ignored."""
    mask = np.zeros(len(cluster.known), np.bool_)
    mask[[row for name in names if (row := cluster.row(name)) is not None]] = True
    return mask
