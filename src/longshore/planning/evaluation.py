"""The evaluation of plans: the cost of a plan, a lower bound for it, and the effect of pods left out."""

from collections.abc import Iterable

from longshore.planning.cost import COSTS
from longshore.planning.plan import Assignment, LeftOut, Plan, none_of
from longshore.planning.problem import Problem


class Evaluation:
    """Evaluates plans for a problem. The bound is computed at once: create it before placing a pod."""

    def __init__(self, problem: Problem) -> None:
        self._cost = COSTS[problem.objective](problem.chooser.cluster)
        self._bound = self._cost.bound(problem.pods)
        self._as_a_whole = problem.all_or_nothing

    def cost(self, rows: Iterable[int]) -> float:
        """Return the cost of the current state, in which the pods of the set are placed in these rows."""
        return self._cost.now(rows)

    def plan(
        self,
        assignments: tuple[Assignment, ...],
        left_out: tuple[LeftOut, ...],
        cost: float,
        *,
        planner: str = "built-in",
        seconds: float = 0.0,
    ) -> Plan:
        if not left_out:
            # At most the cost: the bound does not foresee a pod that is forced onto a full node.
            return Plan(assignments, (), cost, min(self._bound, cost), planner, seconds)
        # There is no bound for a plan that leaves out pods, because a plan that leaves out others may be
        # cheaper.
        if self._as_a_whole:
            return Plan((), none_of(assignments, left_out), self._cost.present, None, planner, seconds)
        return Plan(assignments, left_out, cost, None, planner, seconds)
