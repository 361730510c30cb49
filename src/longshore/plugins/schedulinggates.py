"""SchedulingGates: a pod is not tried until all of its scheduling gates have been removed."""

from longshore.api import Pod
from longshore.framework import Action, Resource, Status, WakeOn

NAME = "SchedulingGates"
REASON = "waiting for scheduling gates: [{gates}]"


class SchedulingGates:
    """PreEnqueue: the pod has no scheduling gates."""

    name = NAME

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(
                Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _is_about_itself, by_shape=True
            ),
        )

    def pre_enqueue(self, pod: Pod) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Status.unresolvable(REASON.format(gates=" ".join(gate.name for gate in gates)))


def _is_about_itself(pod: Pod, old: Pod | None, new: Pod) -> bool:
    return new.metadata.uid == pod.metadata.uid
