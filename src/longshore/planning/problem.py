"""What is to be planned: pods without a node, the cluster they go to, and what a good plan is."""

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
    """A set of pods to find nodes for, with the plugins of `chooser` on its cluster.

    Every plugin of its profile has a say: one that holds the pods until they are planned has to let them pass
    meanwhile. All nodes are looked at, whatever percentage the profile says. HTTP extenders are not asked.

    `objective`: "Balance" keeps the fullest node as empty as can be, "Pack" uses as few nodes as can be.
    `kept`: UID to the node of an earlier plan, in its order; the pod stays there if that is still possible.
    `eligible`: UID to the names of the nodes that the pod may go to; who is not in it may go to any.
    `all_or_nothing`: a plan that leaves out some leaves out all.
    """

    chooser: Chooser
    pods: Sequence[PodInfo]
    objective: Objective = "Balance"
    kept: Mapping[str, str] = {}
    eligible: Mapping[str, Collection[str]] = {}
    all_or_nothing: bool = False


class Member(msgspec.Struct, frozen=True):
    """A pod of the set, with what every attempt needs of it."""

    info: PodInfo
    # Of its shape.
    key: bytes
    # The rows that it may go to; None: all.
    eligible: Bools | None = None
    # Equal for members that are alike in both.
    group: int = 0

    @property
    def uid(self) -> str:
        return self.info.pod.metadata.uid

    @property
    def name(self) -> str:
        return self.info.pod.key


def members_of(problem: Problem) -> list[Member]:
    """Raises ValueError for a pod that has its node already, or that comes twice: a mistake of the caller."""
    cluster = problem.chooser.cluster
    groups: dict[tuple[bytes, frozenset[str] | None], tuple[int, Bools | None]] = {}
    seen: set[str] = set()
    members = []
    for info in problem.pods:
        pod = info.pod
        name = pod.key
        if pod.spec.node_name or cluster.pod(name) is not None:
            raise ValueError(f"pod {name} has a node already: it cannot be planned")
        if name in seen:
            raise ValueError(f"pod {name} comes twice in the set to be planned")
        seen.add(name)
        names = problem.eligible.get(pod.metadata.uid)
        kind = (shape_key(pod), None if names is None else frozenset(names))
        found = groups.get(kind)
        if found is None:
            found = groups[kind] = (len(groups), None if names is None else rows_of(cluster, names))
        members.append(Member(info, kind[0], found[1], found[0]))
    return members


def rows_of(cluster: ClusterState, names: Collection[str]) -> Bools:
    """The rows of the nodes of these names, as far as there are any."""
    mask = np.zeros(len(cluster.known), np.bool_)
    mask[[row for name in names if (row := cluster.row(name)) is not None]] = True
    return mask
