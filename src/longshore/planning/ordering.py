"""In which order the pods of a set are tried: the more important first, among equals the hardest to place.

How hard is told by how many such pods there would be room for if they were alone: few for pods that few nodes
will do for, and few for large ones. Pods that are alike stay together, which is quick, and moving one of them
without the others would change nothing. Pods that require the company of others in the set come after those.
"""

from collections.abc import Collection, Sequence
from operator import attrgetter

import msgspec
import numpy as np

from longshore.cluster import ClusterState, PodInfo, Terms
from longshore.cluster.arrays import Ints
from longshore.planning.problem import Member
from longshore.planning.rehearsal import Rehearsal

# With more kinds of pods than this nobody looks at the nodes of each, nor at who wants whose company.
_MOST_KINDS = 256


class Group(msgspec.Struct, frozen=True):
    """Members that are alike, by name."""

    number: int
    members: tuple[Member, ...]
    # Pods like these that there would be room for; 0 also if nobody looked.
    room: int
    # Of what the largest node offers, the largest share that one of them asks for.
    share: float

    @property
    def priority(self) -> int:
        return self.members[0].info.pod.spec.priority


def ordered(rehearsal: Rehearsal, members: Sequence[Member]) -> list[Group]:
    """The order of the first round, on the cluster as it is."""
    by_number: dict[int, list[Member]] = {}
    for member in members:
        by_number.setdefault(member.group, []).append(member)
    cluster = rehearsal.cluster
    largest: Ints = cluster.allocatable.max(axis=1, initial=0)
    looks = len(by_number) <= _MOST_KINDS
    groups = []
    for number, alike in by_number.items():
        first = alike[0]
        room = _room(rehearsal, first) if looks else 0
        share = _share(cluster, largest, first.info)
        groups.append(Group(number, tuple(sorted(alike, key=attrgetter("name"))), room, share))
    groups.sort(key=lambda group: (-group.priority, group.room, -group.share, group.members[0].name))
    return _after_company(cluster, groups) if looks else groups


def with_first(cluster: ClusterState, groups: Sequence[Group], numbers: Collection[int]) -> list[Group]:
    """The same order, but for the groups of these numbers: they come first among those of their priority."""
    moved = sorted(groups, key=lambda group: (-group.priority, group.number not in numbers))
    return _after_company(cluster, moved) if len(moved) <= _MOST_KINDS else moved


def _room(rehearsal: Rehearsal, member: Member) -> int:
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


def _after_company(cluster: ClusterState, groups: Sequence[Group]) -> list[Group]:
    """Each group after those of its priority that it has to be near to."""
    wanted = {group.number: _company(cluster, group, groups) for group in groups}
    found: dict[int, Group] = {}
    begun: set[int] = set()

    def add(group: Group) -> None:
        if group.number not in begun:
            begun.add(group.number)
            for other in wanted[group.number]:
                add(other)
            found[group.number] = group

    for group in groups:
        add(group)
    return list(found.values())


def _company(cluster: ClusterState, group: Group, groups: Sequence[Group]) -> list[Group]:
    terms = Terms.of_placed(group.members[0].info.pod).affinity
    return [
        other
        for other in (groups if terms else ())
        if other.priority == group.priority
        and any(cluster.pod_counts.selects(term.selector, other.members[0].info.pod) for term in terms)
    ]
