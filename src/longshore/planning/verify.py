"""Whether a plan holds: its entries are replayed in order through the filters that decide about any pod.

An entry that does not hold is not carried out, so that what comes after it is judged without it. The cluster
is as before afterwards.
"""

from collections.abc import Collection, Iterable, Mapping

from longshore.cluster import PodInfo
from longshore.engine.decision.chooser import Chooser
from longshore.engine.decision.shapes import shape_key
from longshore.planning.appraisal import Appraisal
from longshore.planning.plan import Assignment, LeftOut, Plan
from longshore.planning.problem import Member, Problem, members_of, rows_of
from longshore.planning.rehearsal import Rehearsal, in_turn

UNKNOWN_POD = "there is no such pod to be planned"
TWICE = "the pod has an entry already"
NOT_PLANNED = "the plan has no node for the pod"
_REFUSED = "the node is refused"


def violations(
    chooser: Chooser,
    plan: Plan,
    pods: Mapping[str, PodInfo],
    *,
    eligible: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """What is wrong with the entries of the plan, one line for each that does not hold.

    `pods` by UID, and by UID the names of the nodes they may go to, if not to all. An entry of a pod that is
    on its node by now holds.
    """
    told: list[str] = []
    seen: set[str] = set()
    with Rehearsal(chooser) as rehearsal:
        for entry in plan.assignments:
            found = TWICE if entry.uid in seen else _problem(rehearsal, entry, pods, eligible or {})
            seen.add(entry.uid)
            if found:
                told.append(f"{entry.pod} on {entry.node}: {found}")
    return told


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
        return "" if placed == entry.node else f"the pod is on {placed} already"
    names = eligible.get(entry.uid)
    mask = None if names is None else rows_of(rehearsal.cluster, names)
    member = Member(info, shape_key(info.pod), mask)
    if rehearsal.place_on(member, entry.node):
        return ""
    return rehearsal.objection(member, entry.node) or _REFUSED


def checked(problem: Problem, assignments: Iterable[Assignment], *, planner: str = "built-in") -> Plan:
    """A plan of the entries that hold, in their order; pods whose entry does not are left out, with a reason.

    For answers of other planners, which may be maps without an order: an entry that does not hold in its turn
    is tried again after the others. Such answers tell of pods that run, too: entries of pods that are not to
    be planned are passed over, and so is a second one for the same pod. Pods without an entry stay where they
    were kept, if they can.
    """
    members = {member.uid: member for member in members_of(problem)}
    appraisal = Appraisal(problem)
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
        cost = appraisal.cost(rehearsal.rows)
        placed = rehearsal.assignments
    left_out += [
        LeftOut(member.name, uid, NOT_PLANNED) for uid, member in members.items() if uid not in nodes
    ]
    return appraisal.plan(placed, tuple(left_out), cost, planner=planner)
