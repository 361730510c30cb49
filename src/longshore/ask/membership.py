"""What a pod set means for one of its pods: who holds it, and where the plan sends it."""

from collections.abc import Iterable

import msgspec

from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.ask.pod_sets import sets_of
from longshore.podset.texts import BEING_PLANNED, why_held


class Membership(msgspec.Struct, frozen=True, rename="camel"):
    pod_set: str
    # The trigger that counts; empty if there is none.
    trigger: str = ""
    state: str = ""
    # Why the pod is not tried yet; empty if it is, or is on a node.
    waits: str = ""
    # The stored plan, its node for the pod, or why it has none; empty if there is no plan yet.
    plan: str = ""
    planned_node: str = ""
    unplaced: str = ""


def membership(objects: Iterable[ApiObject], pod: Pod) -> Membership | None:
    """None if the pod belongs to no set. As far as the objects tell, which may lack triggers or plans."""
    seen = sets_of(tuple(objects), (pod,)).of(pod)
    if seen is None:
        return None
    name, trigger, plan = pod.metadata.name, seen.trigger, seen.plan
    node = unplaced = ""
    if plan is not None:
        node = next((entry.node for entry in plan.spec.plan if entry.pod == name), "")
        unplaced = next((each.reason for each in plan.status.unplaced if each.pod == name and not node), "")
    waits = ""
    if trigger is None:
        # Who asks may have no right to see it: nobody is told to create another.
        waits = f"no trigger of pod set {seen.name} was found"
    elif not seen.released:
        waits = why_held(seen)
    elif not node and not unplaced:
        waits = BEING_PLANNED
    return Membership(
        seen.name,
        trigger=trigger.metadata.name if trigger else "",
        state=trigger.spec.state if trigger else "",
        waits="" if pod.spec.node_name else waits,
        plan=plan.metadata.name if plan else "",
        planned_node=node,
        unplaced=unplaced,
    )
