"""What a plan is worth: its cost beside what any plan must cost, and whether a part of it will do."""

from collections.abc import Iterable

from longshore.planning.cost import COSTS
from longshore.planning.plan import Assignment, LeftOut, Plan, none_of
from longshore.planning.problem import Problem


class Appraisal:
    """To be made before the first pod is placed: bounds are about the cluster without them."""

    def __init__(self, problem: Problem) -> None:
        self._cost = COSTS[problem.objective](problem.chooser.cluster)
        self._bound = self._cost.bound(problem.pods)
        self._as_a_whole = problem.all_or_nothing

    def cost(self, rows: Iterable[int]) -> float:
        """With the pods of the set in these rows, while they are placed."""
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
            # Never above the cost: a pod that is forced onto a full node is not what the bound reckons with.
            return Plan(assignments, (), cost, min(self._bound, cost), planner, seconds)
        # A plan that leaves out other pods may cost anything: there is no bound.
        if self._as_a_whole:
            return Plan((), none_of(assignments, left_out), self._cost.present, None, planner, seconds)
        return Plan(assignments, left_out, cost, None, planner, seconds)
