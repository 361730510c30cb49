"""The state of a pod in its pod set: what it waits for, and where the plan sends it."""

from collections.abc import Iterable

import msgspec

from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.ask.pod_sets import sets_of
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.podset.members import Facts, Member
from longshore.podset.plan_entries import entries_of
from longshore.podset.sets import PodSet
from longshore.podset.texts import why_waits
from longshore.podset.transitions import PlanStored, observed, react


class Membership(msgspec.Struct, frozen=True, rename="camel"):
    pod_set: str
    # The trigger that counts; empty if there is none.
    trigger: str = ""
    state: str = ""
    # Why the pod is not tried yet; empty if it is, or if it has a node.
    waits: str = ""
    # The stored plan, its node for the pod, or why it has none; empty if there is no plan yet.
    plan: str = ""
    planned_node: str = ""
    unplaced: str = ""


def membership(objects: Iterable[ApiObject], pod: Pod) -> Membership | None:
    """Return None if the pod belongs to no set. The objects may lack triggers or plans."""
    seen = sets_of(tuple(objects), (pod,)).of(pod)
    if seen is None:
        return None
    trigger, plan, name = seen.trigger, seen.plan, pod.metadata.name
    node, unplaced = entries_of(plan).get(name, ""), ""
    if plan is not None and not node:
        unplaced = next((each.reason for each in plan.status.unplaced if each.pod == name), "")
    waits = ""
    if not pod.spec.node_name:
        # Without a trigger: the caller may have no right to see it, so no advice to create one.
        waits = f"no trigger of pod set {seen.name} was found"
        if trigger is not None:
            waits = why_waits(seen, _member(seen, pod, unplaced))
    return Membership(
        seen.name,
        trigger=trigger.metadata.name if trigger else "",
        state=trigger.spec.state if trigger else "",
        waits=waits,
        plan=plan.metadata.name if plan else "",
        planned_node=node,
        unplaced=unplaced,
    )


def _member(seen: PodSet, pod: Pod, unplaced: str) -> Member:
    """Return the pod in the stage that the scheduler sees, as far as the objects tell."""
    whole = seen.trigger is not None and seen.trigger.spec.all_or_nothing
    facts, uid = Facts(seen.released, whole, entries_of(seen.plan)), pod.metadata.uid
    members = observed([pod], facts)
    if unplaced:
        stored = PlanStored([uid], {uid: unplaced}, REASON_UNSCHEDULABLE if whole else "")
        members.update(react(members, stored, facts).changed)
    return members.get(uid) or Member(pod)
