"""Checks a plan: its entries are replayed in order through the same filters that decide about any pod.

An invalid entry is not carried out, so that the entries after it are checked without it. Afterwards the
cluster is as it was before.
"""

from collections.abc import Collection, Iterable, Mapping

from longshore.cluster import PodInfo
from longshore.engine.decision.chooser import Chooser
from longshore.engine.decision.shapes import shape_key
from longshore.planning.evaluation import Evaluation
from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import PodToPlan, Problem, members_of, rows_of
from longshore.planning.rehearsal import Rehearsal, in_turn

UNKNOWN_POD = "there is no such pod to plan"
TWICE = "the pod already has an entry"
NOT_PLANNED = "the plan has no node for the pod"
_REFUSED = "the node was rejected"


def violations(
    chooser: Chooser,
    plan: Plan,
    pods: Mapping[str, PodInfo],
    *,
    eligible: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """Return what is wrong with the plan, one line for each invalid entry.

    `pods` are the pods by UID, and `eligible` the names of the nodes that a pod may use, if not all. An entry
    is also valid if its pod is already on its node.
    """
    lines: list[str] = []
    seen: set[str] = set()
    with Rehearsal(chooser) as rehearsal:
        for entry in plan.assignments:
            found = TWICE if entry.uid in seen else _problem(rehearsal, entry, pods, eligible or {})
            seen.add(entry.uid)
            if found:
                lines.append(f"{entry.pod} on {entry.node}: {found}")
    return lines


def _problem(
    rehearsal: Rehearsal,
    entry: Assignment,
    pods: Mapping[str, PodInfo],
    eligible: Mapping[str, Collection[str]],
) -> str:
    info = pods.get(entry.uid)
    if info is None:
        return UNKNOWN_POD
    placed = rehearsal.cluster.node_of(info.pod)
    if placed is not None:
        return "" if placed == entry.node else f"the pod is already on {placed}"
    names = eligible.get(entry.uid)
    mask = None if names is None else rows_of(rehearsal.cluster, names)
    member = PodToPlan(info, shape_key(info.pod), mask)
    if rehearsal.place_on(member, entry.node):
        return ""
    return rehearsal.objection(member, entry.node) or _REFUSED


def checked(problem: Problem, assignments: Iterable[Assignment], *, planner: str = "built-in") -> Plan:
    """Return a plan of the valid entries, in order. Pods with an invalid entry are left out, with a reason.

    This is for answers of other planners, which may be maps without an order: an entry that is not valid in
    its turn is tried again after the others. Entries for pods that are not in the problem, such as running
    ones, are ignored, and so is a second entry for the same pod. Pods without an entry stay on their `kept`
    nodes if possible.
    """
    members = {member.uid: member for member in members_of(problem)}
    evaluation = Evaluation(problem)
    nodes: dict[str, str] = {}
    for entry in assignments:
        if entry.uid in members:
            nodes.setdefault(entry.uid, entry.node)
    for uid, node in problem.kept.items():
        if uid in members:
            nodes.setdefault(uid, node)
    with Rehearsal(problem.chooser) as rehearsal:
        entries = [(members[uid], node) for uid, node in nodes.items()]
        refused = in_turn(entries, lambda entry: rehearsal.place_on(*entry))
        left_out = [
            LeftOut(member.name, member.uid, f"{node}: {rehearsal.objection(member, node) or _REFUSED}")
            for member, node in refused
        ]
        cost = evaluation.cost(rehearsal.rows)
        placed = rehearsal.assignments
    left_out += [
        LeftOut(member.name, uid, NOT_PLANNED) for uid, member in members.items() if uid not in nodes
    ]
    return evaluation.plan(placed, tuple(left_out), cost, planner=planner)
