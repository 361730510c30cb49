"""The order in which the pods of a set are tried: by priority, then those that are hardest to place.

How hard a pod is to place is estimated by how many such pods would fit if they were alone: few if they fit on
few nodes, and few if they are large. Pods that are alike stay together: this is fast, and moving one of them
without the others would change nothing. A pod with a required affinity to other pods of the set comes after
those.
"""

from collections.abc import Collection, Sequence
from operator import attrgetter

import msgspec
import numpy as np

from longshore.cluster import ClusterState, PodInfo, Terms
from longshore.cluster.arrays import Ints
from longshore.planning.problem import PodToPlan
from longshore.planning.rehearsal import Rehearsal

# With more kinds of pods than this, neither the room for each kind nor affinity between them is considered.
_MOST_KINDS = 256


class Group(msgspec.Struct, frozen=True):
    """Members that are alike, sorted by name."""

    number: int
    members: tuple[PodToPlan, ...]
    # How many pods like these would fit. Also 0 if this was not computed.
    room: int
    # The largest request of one of them, as a share of what the largest node offers.
    share: float

    @property
    def priority(self) -> int:
        return self.members[0].info.pod.spec.priority


def ordered(rehearsal: Rehearsal, members: Sequence[PodToPlan]) -> list[Group]:
    """Return the order of the first round, for the cluster as it is."""
    by_number: dict[int, list[PodToPlan]] = {}
    for member in members:
        by_number.setdefault(member.group, []).append(member)
    cluster = rehearsal.cluster
    largest: Ints = cluster.allocatable.max(axis=1, initial=0)
    few_kinds = len(by_number) <= _MOST_KINDS
    groups = []
    for number, alike in by_number.items():
        first = alike[0]
        room = _room(rehearsal, first) if few_kinds else 0
        share = _share(cluster, largest, first.info)
        groups.append(Group(number, tuple(sorted(alike, key=attrgetter("name"))), room, share))
    groups.sort(key=lambda group: (-group.priority, group.room, -group.share, group.members[0].name))
    return _after_required(cluster, groups) if few_kinds else groups


def with_first(cluster: ClusterState, groups: Sequence[Group], numbers: Collection[int]) -> list[Group]:
    """Return the groups in the same order, but with these numbers first among those of their priority."""
    moved = sorted(groups, key=lambda group: (-group.priority, group.number not in numbers))
    return _after_required(cluster, moved) if len(moved) <= _MOST_KINDS else moved


def _room(rehearsal: Rehearsal, member: PodToPlan) -> int:
    cluster, info = rehearsal.cluster, member.info
    left = rehearsal.feasible(member)
    if left is None:
        return 0
    least: Ints | None = None
    for resource, amount in info.requests.items():
        column = cluster.column(resource)
        if column is None:
            return 0
        fit = (cluster.allocatable[column] - cluster.requested[column])[left] // amount
        least = fit if least is None else np.minimum(least, fit)
    return 0 if least is None else int(np.maximum(least, 0).sum())


def _share(cluster: ClusterState, largest: Ints, info: PodInfo) -> float:
    columns = ((cluster.column(resource), amount) for resource, amount in info.requests.items())
    return max(amount / max(int(largest[c]), 1) if c is not None else 1.0 for c, amount in columns)


def _after_required(cluster: ClusterState, groups: Sequence[Group]) -> list[Group]:
    """Return the groups so that each comes after the groups of its priority that it must be near to."""
    required = {group.number: _required(cluster, group, groups) for group in groups}
    found: dict[int, Group] = {}
    begun: set[int] = set()

    def add(group: Group) -> None:
        if group.number not in begun:
            begun.add(group.number)
            for other in required[group.number]:
                add(other)
            found[group.number] = group

    for group in groups:
        add(group)
    return list(found.values())


def _required(cluster: ClusterState, group: Group, groups: Sequence[Group]) -> list[Group]:
    terms = Terms.of_placed(group.members[0].info.pod).affinity
    return [
        other
        for other in (groups if terms else ())
        if other.priority == group.priority
        and any(cluster.pod_counts.selects(term.selector, other.members[0].info.pod) for term in terms)
    ]
