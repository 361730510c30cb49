"""The source of a set's plan: its planner services if it has any, else the built-in planner.

The answer of a service is checked entry by entry against the engine's own filters. Pods that it leaves out,
or sends where they cannot go, are planned by the built-in planner, unless that is switched off.
"""

from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from longshore.api import Service
from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import PACK, ScheduleTrigger
from longshore.cluster import PodInfo
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.engine.decision.chooser import Chooser
from longshore.engine.plugin_failure import PluginFailure
from longshore.framework.effects import Answered, Ask, CallPlanner, Outcome, Together
from longshore.planning.handle import PlanningHandle
from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import Problem
from longshore.planning.verify import checked
from longshore.podset.built_in import Waiting, is_better, search, updated
from longshore.podset.planner_services import Planner, PlannerSettings, planners_of
from longshore.podset.profile import planning_chooser
from longshore.podset.sets import PodSet
from longshore.podset.texts import NO_PLANNER, NO_PLANNER_FOR_THE_WHOLE, REASON_PLANNER

# The kinds of failure of a planner service.
NO_ANSWER, INCOMPLETE = "no-answer", "incomplete"


class PlanAnswer(msgspec.Struct, frozen=True):
    """`barred` is the reason for the conditions of pods left out, if they may not look for a node themselves.

    `trouble` is what was wrong with the planner services, if anything. `no_planner`: there is no planner, and
    the pods are scheduled like any others.
    """

    plan: Plan
    trouble: str = ""
    barred: str = ""
    no_planner: bool = False


class PlanSource:
    def __init__(self, handle: PlanningHandle, settings: PlannerSettings) -> None:
        self._handle = handle
        self._settings = settings
        # How often planner services failed, by name and kind of failure.
        self.failures: Counter[tuple[str, str]] = Counter()

    @cached_property
    def _chooser(self) -> Chooser:
        """Made late: the handle gets its chooser after the plugins are made."""
        return planning_chooser(self._handle.chooser)

    def plan(
        self,
        podset: PodSet,
        trigger: ScheduleTrigger,
        waiting: Waiting,
        *,
        kept: Mapping[str, str],
        refused: Mapping[str, Collection[str]],
    ) -> Generator[Ask, Outcome, PlanAnswer]:
        """Plan the waiting pods as the trigger wants it.

        `kept` are the nodes that pods had so far, and `refused` the nodes that did not fit them; by UID.
        """
        cluster, trouble = self._handle.cluster, ""
        rows = np.flatnonzero(cluster.known).tolist() if refused else ()
        nodes = frozenset(map(cluster.node_name, rows))
        problem = Problem(
            self._chooser,
            [PodInfo.of(pod) for pod in waiting().values()],
            objective="Pack" if trigger.spec.objective == PACK else "Balance",
            kept=kept,
            eligible={uid: nodes.difference(names) for uid, names in refused.items()},
            all_or_nothing=trigger.spec.all_or_nothing,
        )
        planners = planners_of(podset.name, tuple(cluster.objects(Service)), self._settings)
        if planners:
            problem, best, trouble = yield from self._ask(planners, podset, problem, waiting)
            if best is not None and best.complete:
                return PlanAnswer(best, trouble)
            if self._settings.fallback == "none":
                return PlanAnswer(_without_fallback(problem, best, trouble), trouble, REASON_PLANNER)
            if best is not None:
                problem = replace(problem, kept={each.uid: each.node for each in best.assignments})
        elif self._settings.fallback == "none":
            return _without_planners(problem)
        made = yield from search(
            problem, waiting, clock=self._handle.stopwatch, budget=trigger.spec.budget_seconds
        )
        return PlanAnswer(made, trouble, REASON_UNSCHEDULABLE if trigger.spec.all_or_nothing else "")

    def _ask(
        self, planners: Sequence[Planner], podset: PodSet, problem: Problem, waiting: Waiting
    ) -> Generator[Ask, Outcome, tuple[Problem, Plan | None, str]]:
        """Ask all services at once. Return the problem as it is by then, the best plan, and what failed."""
        began = self._handle.now()
        first = min(problem.pods, key=lambda info: info.pod.metadata.name)
        eligible = _eligible(self._chooser, first)
        allowed = problem.eligible.get(first.pod.metadata.uid)
        if allowed is not None:
            eligible = tuple(name for name in eligible if name in allowed)
        request = PlanRequest(podset.namespace, podset.name, first.pod.metadata.name, eligible)
        calls = [CallPlanner(planner.address, request, self._settings.call_seconds) for planner in planners]
        together = yield Together(tuple(calls))
        outcomes = together.value if isinstance(together, Answered) else [together] * len(calls)
        seconds = self._handle.now() - began
        # Some pods may be gone by now, or have a node.
        problem = updated(problem, waiting())
        best, troubles = None, []
        for planner, outcome in zip(planners, outcomes, strict=True):
            if not isinstance(outcome, Answered):
                self.failures[planner.name, NO_ANSWER] += 1
                troubles.append(f"planner {planner.name}: {outcome.message or type(outcome).__name__}")
                continue
            found = replace(_checked(planner, problem, outcome.value), seconds=seconds)
            if found.left_out:
                self.failures[planner.name, INCOMPLETE] += 1
            if best is None or is_better(found, best):
                best = found
        if best is not None and best.left_out:
            troubles.append(_left_out(best))
        return problem, best, "; ".join(troubles)


def _checked(planner: Planner, problem: Problem, nodes: Mapping[str, str]) -> Plan:
    """Return the valid part of a service's answer."""
    wanted = [
        Assignment(info.pod.key, info.pod.metadata.uid, nodes[info.pod.metadata.name])
        for info in problem.pods
        if info.pod.metadata.name in nodes
    ]
    return checked(replace(problem, kept={}), wanted, planner=planner.name)


def _without_planners(problem: Problem) -> PlanAnswer:
    """Without a planner, pods are scheduled one by one, as in Pallet. An all-or-nothing set has to wait."""
    if not problem.all_or_nothing:
        return PlanAnswer(Plan((), planner=""), NO_PLANNER, no_planner=True)
    left_out = (
        LeftOut(info.pod.key, info.pod.metadata.uid, NO_PLANNER_FOR_THE_WHOLE) for info in problem.pods
    )
    return PlanAnswer(Plan((), tuple(left_out), planner=""), NO_PLANNER_FOR_THE_WHOLE, REASON_PLANNER)


def _without_fallback(problem: Problem, best: Plan | None, trouble: str) -> Plan:
    """Return only what a service has placed: for an all-or-nothing set, that is all pods or none."""
    placed = () if best is None else best.assignments
    uids = {each.uid for each in placed}
    left = [info.pod for info in problem.pods if info.pod.metadata.uid not in uids]
    left_out = tuple(LeftOut(pod.key, pod.metadata.uid, trouble) for pod in left)
    return replace(best, left_out=left_out) if best is not None else Plan((), left_out, planner="")


def _eligible(chooser: Chooser, pod: PodInfo) -> tuple[str, ...]:
    """Return the names of the nodes that fit the pod.

    Pallet's own planner gives up on a pod if any of them has a taint, even one that the pod tolerates. So
    nodes with taints are named only if no others fit.
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


def _left_out(plan: Plan) -> str:
    names = ", ".join(each.pod for each in plan.left_out[:3])
    more = f" and {len(plan.left_out) - 3} more" if len(plan.left_out) > 3 else ""
    return f"planner {plan.planner}: no valid node for {names}{more} ({plan.left_out[0].reason})"
