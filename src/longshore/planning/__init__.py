"""Planning a set of pods as a whole: where each of them goes, in which order, and what that costs.

    problem = Problem(engine.chooser("longshore"), [PodInfo.of(pod) for pod in pods])
    plan = greedy.plan(problem, clock=time.monotonic)
    for assignment in plan.assignments:
        print(assignment.pod, assignment.node)

A plan is a value, made and checked through the filters and scores that decide about any pod. Whoever acts
upon it follows its order, and checks each entry again.
"""

from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import Objective, Problem

__all__ = ["Assignment", "LeftOut", "Objective", "Plan", "Problem"]
