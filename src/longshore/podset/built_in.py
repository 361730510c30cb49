"""Runs the built-in planner for a set in slices, so that other work gets its turn between two rounds."""

from collections.abc import Callable, Generator, Mapping
from operator import is_

from msgspec.structs import replace

from longshore.api import Pod
from longshore.cluster import PodInfo
from longshore.framework.effects import Outcome, Pause, Succeeded
from longshore.planning import greedy
from longshore.planning.plan import Plan
from longshore.planning.problem import Problem

# The pods that still need a plan, by UID; none if the set is no longer planned in this way.
Waiting = Callable[[], Mapping[str, Pod]]
# A search that waits between its rounds.
Search = Generator[Pause, Outcome, Plan]

# After a round others get their turn for this share of the time that it took.
_SHARE_OF_OTHERS = 0.25


def search(
    problem: Problem, waiting: Waiting, *, clock: Callable[[], float], budget: float, moves_kept: bool = True
) -> Search:
    """Plan; `moves_kept`: if not all pods fit, plan again without keeping pods on their earlier nodes."""
    found = yield from _rounds(problem, waiting, clock, budget)
    if found.complete or not problem.kept or not moves_kept:
        return found
    # The pods that were kept may be in the way.
    free = replace(updated(problem, waiting()), kept={})
    other = yield from _rounds(free, waiting, clock, budget - found.seconds)
    return other if is_better(other, found) else found


def _rounds(problem: Problem, waiting: Waiting, clock: Callable[[], float], budget: float) -> Search:
    rounds = greedy.Search(problem, clock=clock, budget=budget)
    while True:
        before = rounds.seconds
        rounds.round()
        if rounds.over:
            return rounds.plan
        yield Pause(_SHARE_OF_OTHERS * (rounds.seconds - before))
        changed = updated(problem, waiting())
        if not changed.pods:
            return rounds.plan
        if changed is not problem:
            budget -= rounds.seconds
            kept = {each.uid: each.node for each in rounds.plan.assignments}
            problem = replace(changed, kept={**problem.kept, **kept})
            rounds = greedy.Search(problem, clock=clock, budget=budget)


def finish(search: Search) -> Plan:
    """Return the plan, without waiting between rounds."""
    try:
        next(search)
        while True:
            search.send(Succeeded())
    except StopIteration as end:
        plan: Plan = end.value
        return plan


def updated(problem: Problem, waiting: Mapping[str, Pod]) -> Problem:
    """Return the problem for the pods that still wait, as they are now; the same object if unchanged."""
    pods = [
        info if info.pod is pod else PodInfo.of(pod)
        for info in problem.pods
        if (pod := waiting.get(info.pod.metadata.uid)) is not None
    ]
    same = len(pods) == len(problem.pods) and all(map(is_, pods, problem.pods))
    return problem if same else replace(problem, pods=pods)


def is_better(one: Plan, other: Plan) -> bool:
    return (-len(one.assignments), one.objective) < (-len(other.assignments), other.objective)
