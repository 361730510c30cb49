"""A plan for the pods of a set: from its planner services if it has any, else from the planner built in.

What a service answers is checked entry by entry against the engine's own filters. Pods that it leaves out, or
sends where they cannot go, are planned here, unless that is switched off; whatever went wrong is told.
"""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from operator import is_
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from longshore.api import Pod, Service
from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import PACK, ScheduleTrigger
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.engine.decision.chooser import Chooser
from longshore.engine.plugin_failure import PluginFailure
from longshore.framework.effects import Answered, Ask, CallPlanner, Outcome, Pause, Together
from longshore.planning import greedy
from longshore.planning.handle import PlanningHandle
from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import Problem
from longshore.planning.verify import checked
from longshore.podset.planners import Planner, PlannerSettings, planners_of
from longshore.podset.sets import PodSet
from longshore.podset.texts import NO_PLANNER, NO_PLANNER_FOR_THE_WHOLE, REASON_PLANNER

T = TypeVar("T")

# The pods that are still to be planned, by UID: none if the set is not to be planned like this any more.
Waiting = Callable[[], Mapping[str, Pod]]

# After a round of planning others have so much time, as a share of what it took.
_SHARE_OF_OTHERS = 0.25

# What planner services fail by.
NO_ANSWER, INCOMPLETE = "no-answer", "incomplete"


class Imagine(Protocol):
    """Runs a function while pods are placed as if nothing held them."""

    def __call__(self, work: Callable[[], T]) -> T: ...


class Answer(msgspec.Struct, frozen=True):
    """`barred` is the reason for the conditions of pods left out, if they may not look for a node themselves.

    `trouble` is what was wrong with the planner services, if anything. `by_themselves`: nobody plans the set,
    and its pods are scheduled like any others.
    """

    plan: Plan
    trouble: str = ""
    barred: str = ""
    by_themselves: bool = False


class Asking:
    def __init__(self, handle: PlanningHandle, settings: PlannerSettings, *, imagine: Imagine) -> None:
        self._handle = handle
        self._settings = settings
        self._imagine = imagine
        # Of planner services, by name and by what they fail.
        self.failures: Counter[tuple[str, str]] = Counter()

    def plan(
        self,
        podset: PodSet,
        waiting: Waiting,
        trigger: ScheduleTrigger,
        *,
        kept: Mapping[str, str],
        refused: Mapping[str, Collection[str]],
    ) -> Generator[Ask, Outcome, Answer]:
        """`kept` are nodes that pods had so far, and `refused` nodes that would not do for them; by UID."""
        cluster = self._handle.cluster
        nodes = _node_names(cluster) if refused else frozenset()
        problem = Problem(
            self._handle.chooser,
            [PodInfo.of(pod) for pod in waiting().values()],
            objective="Pack" if trigger.spec.objective == PACK else "Balance",
            kept=kept,
            eligible={uid: nodes.difference(names) for uid, names in refused.items()},
            all_or_nothing=trigger.spec.all_or_nothing,
        )
        planners = planners_of(podset.name, tuple(cluster.objects(Service)), self._settings)
        if not planners and self._settings.fallback == "none":
            return _without_planners(problem)
        best, troubles = None, []
        answers = yield from self._ask(planners, podset, problem)
        # Time has passed, and some may be gone or have got a node.
        problem = _updated(problem, waiting())
        for planner, answer in zip(planners, answers, strict=True):
            found = answer if isinstance(answer, str) else self._checked(planner, problem, answer)
            if isinstance(found, str) or found.left_out:
                self.failures[planner.name, NO_ANSWER if isinstance(found, str) else INCOMPLETE] += 1
            if isinstance(found, str):
                troubles.append(found)
            elif best is None or _better(found, best):
                best = found
        if best is not None and best.left_out:
            troubles.append(_left_out(best))
        trouble = "; ".join(troubles)
        if best is not None and best.complete:
            return Answer(best, trouble)
        if planners and self._settings.fallback == "none":
            return Answer(_without_fallback(problem, best, trouble), trouble, REASON_PLANNER)
        if best is not None:
            problem = replace(problem, kept={each.uid: each.node for each in best.assignments})
        made = yield from self._built_in(problem, waiting, trigger.spec.budget_seconds)
        return Answer(made, trouble, REASON_UNSCHEDULABLE if trigger.spec.all_or_nothing else "")

    def _built_in(self, problem: Problem, waiting: Waiting, budget: float) -> Generator[Ask, Outcome, Plan]:
        found = yield from self._search(problem, waiting, budget)
        if found.complete or not problem.kept:
            return found
        # What was kept may be what stands in the way.
        anew = replace(_updated(problem, waiting()), kept={})
        other = yield from self._search(anew, waiting, budget - found.seconds)
        return other if _better(other, found) else found

    def _search(self, problem: Problem, waiting: Waiting, budget: float) -> Generator[Ask, Outcome, Plan]:
        """Between rounds everybody else has a turn, so that a long search stops nobody."""
        search = greedy.Search(problem, clock=self._handle.stopwatch, budget=budget)
        while True:
            before = search.seconds
            self._imagine(search.round)
            if search.over:
                return search.plan
            yield Pause(_SHARE_OF_OTHERS * (search.seconds - before))
            updated = _updated(problem, waiting())
            if not updated.pods:
                return search.plan
            if updated is not problem:
                budget -= search.seconds
                kept = {each.uid: each.node for each in search.plan.assignments}
                problem = replace(updated, kept={**problem.kept, **kept})
                search = greedy.Search(problem, clock=self._handle.stopwatch, budget=budget)

    def _ask(
        self, planners: Sequence[Planner], podset: PodSet, problem: Problem
    ) -> Generator[Ask, Outcome, list[tuple[Mapping[str, str], float] | str]]:
        """All of them at once: nodes by name and how long that took, or what went wrong."""
        if not planners:
            return []
        began = self._handle.now()
        first = min(problem.pods, key=lambda info: info.pod.metadata.name)
        eligible = self._imagine(lambda: _eligible(self._handle.chooser, first))
        allowed = problem.eligible.get(first.pod.metadata.uid)
        if allowed is not None:
            eligible = tuple(name for name in eligible if name in allowed)
        request = PlanRequest(podset.namespace, podset.name, first.pod.metadata.name, eligible)
        calls = [CallPlanner(planner.address, request, self._settings.call_seconds) for planner in planners]
        together = yield Together(tuple(calls))
        outcomes = together.value if isinstance(together, Answered) else [together] * len(calls)
        seconds = self._handle.now() - began
        return [
            (outcome.value, seconds) if isinstance(outcome, Answered) else _failure(planner, outcome)
            for planner, outcome in zip(planners, outcomes, strict=True)
        ]

    def _checked(self, planner: Planner, problem: Problem, answer: tuple[Mapping[str, str], float]) -> Plan:
        """The answer as far as it holds."""
        nodes, seconds = answer
        wanted = [
            Assignment(info.pod.key, info.pod.metadata.uid, nodes[info.pod.metadata.name])
            for info in problem.pods
            if info.pod.metadata.name in nodes
        ]
        found = self._imagine(lambda: checked(replace(problem, kept={}), wanted, planner=planner.name))
        return replace(found, seconds=seconds)


def _updated(problem: Problem, waiting: Mapping[str, Pod]) -> Problem:
    """For those of the pods that still wait, as they are now; the same if nothing has changed."""
    pods = [
        info if info.pod is pod else PodInfo.of(pod)
        for info in problem.pods
        if (pod := waiting.get(info.pod.metadata.uid)) is not None
    ]
    same = len(pods) == len(problem.pods) and all(map(is_, pods, problem.pods))
    return problem if same else replace(problem, pods=pods)


def _without_planners(problem: Problem) -> Answer:
    """As Pallet has it. That a set goes as a whole nobody can promise who has no plan: then it waits."""
    if not problem.all_or_nothing:
        return Answer(Plan((), planner=""), NO_PLANNER, by_themselves=True)
    left_out = (
        LeftOut(info.pod.key, info.pod.metadata.uid, NO_PLANNER_FOR_THE_WHOLE) for info in problem.pods
    )
    return Answer(Plan((), tuple(left_out), planner=""), NO_PLANNER_FOR_THE_WHOLE, REASON_PLANNER)


def _failure(planner: Planner, outcome: Outcome) -> str:
    return f"planner {planner.name}: {outcome.message or type(outcome).__name__}"


def _without_fallback(problem: Problem, best: Plan | None, trouble: str) -> Plan:
    """Only what a service has placed; of a set that goes as a whole that is nothing, unless it is all."""
    placed = () if best is None else best.assignments
    uids = {each.uid for each in placed}
    left = [info.pod for info in problem.pods if info.pod.metadata.uid not in uids]
    left_out = tuple(LeftOut(pod.key, pod.metadata.uid, trouble) for pod in left)
    return replace(best, left_out=left_out) if best is not None else Plan((), left_out, planner="")


def _node_names(cluster: ClusterState) -> frozenset[str]:
    return frozenset(map(cluster.node_name, np.flatnonzero(cluster.known).tolist()))


def _eligible(chooser: Chooser, pod: PodInfo) -> tuple[str, ...]:
    """The names of the nodes that will do for the pod.

    Pallet's own planner gives up on a pod if any of them has a taint, even one that the pod tolerates: those
    are told of only if there are no others.
    """
    cluster = chooser.cluster
    try:
        attempt = chooser.attempt(pod)
        left = attempt.feasible() if attempt.pre_filter() is None else np.zeros(0, np.bool_)
    except PluginFailure:
        return ()
    tainted = cluster.taints.count(
        lambda taints: any(t.effect in ("NoSchedule", "NoExecute") for t in taints), slice(0, len(left))
    )
    untainted = left & (tainted == 0)
    rows = np.flatnonzero(untainted if untainted.any() else left).tolist()
    return tuple(sorted(map(cluster.node_name, rows)))


def _better(one: Plan, other: Plan) -> bool:
    return (-len(one.assignments), one.objective) < (-len(other.assignments), other.objective)


def _left_out(plan: Plan) -> str:
    names = ", ".join(each.pod for each in plan.left_out[:3])
    more = f" and {len(plan.left_out) - 3} more" if len(plan.left_out) > 3 else ""
    return f"planner {plan.planner}: no valid node for {names}{more} ({plan.left_out[0].reason})"
