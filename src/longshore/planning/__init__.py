"""Plans a set of pods as a whole: the node of each pod, their order, and what the plan costs.

    problem = Problem(engine.chooser("longshore"), [PodInfo.of(pod) for pod in pods])
    plan = greedy.plan(problem, clock=time.monotonic)
    for assignment in plan.assignments:
        print(assignment.pod, assignment.node)

A plan is a value. It is made and checked with the same filters and scores that place single pods. Code that
carries out a plan follows its order, and checks each entry again.
"""

from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import Objective, Problem

__all__ = ["Assignment", "LeftOut", "Objective", "Plan", "Problem"]
