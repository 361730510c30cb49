"""How candidates for preemption compare, for every PostFilter plugin: as kube-scheduler compares them.

A plugin that ranks its candidates makes them here. So does the engine when an extender changes the victims.
"""

from collections.abc import Sequence

from longshore.cluster import PodInfo
from longshore.framework.points import Candidate

# A pod that has not started counts as started now, later than all others.
NOT_STARTED = "~"


def candidate(node: str, victims: Sequence[PodInfo], violations: int) -> Candidate:
    """Return the node as a candidate. `victims` are ordered by importance, the most important one first."""
    highest = victims[0].pod.spec.priority
    cost = (
        violations,
        highest,
        sum(victim.pod.spec.priority + 2**31 for victim in victims),
        len(victims),
    )
    return Candidate(node, tuple(victims), cost, victims[0].pod.status.start_time or NOT_STARTED)


def best(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the lowest cost; among equals, the one whose victims started last."""
    least = min(c.cost for c in candidates)
    return max((c for c in candidates if c.cost == least), key=lambda c: c.started)
