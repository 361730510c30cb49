"""What people are told about sets: the words of conditions and events."""

from longshore.api import Pod, PodCondition
from longshore.api.duration import parse_duration
from longshore.api.podset import POD_SET_LABEL, QUIET_TIME_LABEL
from longshore.engine.telling import POD_SCHEDULED
from longshore.podset.sets import PodSet

# Not Unschedulable: autoscalers would add nodes for pods that merely wait.
REASON_WAITING = "WaitingForTrigger"
REASON_PLANNER = "WaitingForPlanner"
REASON_GATES = "WaitingForGates"

NO_TRIGGER = "pod set {name} has no trigger: create a ScheduleTrigger with the label {label}={name}"
HELD = "pod set {name} is held by its trigger {trigger} until its state is Schedule"
HELD_QUIET = (
    "pod set {name} is held by its trigger {trigger}, which fires {quiet} after the last pod of the set was "
    "created"
)
BEING_PLANNED = "the pod's set is being planned"
PLANNED_AGAIN = "planned node {node} will not do any more: the set is planned again"
NOT_BOUND = "binding to the planned node {node} has failed again and again"
GATED = "the set goes only as a whole, and {pod} has the scheduling gate {gate}"


def why_held(podset: PodSet) -> str:
    trigger = podset.trigger
    if trigger is None:
        return NO_TRIGGER.format(name=podset.name, label=POD_SET_LABEL)
    quiet = trigger.metadata.labels.get(QUIET_TIME_LABEL, "")
    words = HELD if parse_duration(quiet) is None else HELD_QUIET
    return words.format(name=podset.name, trigger=trigger.metadata.name, quiet=quiet)


def waiting_condition(pod: Pod, reason: str, message: str) -> PodCondition:
    return PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
    )


def is_told(pod: Pod, reason: str, message: str) -> bool:
    """Whether the pod's status says so already."""
    return any(
        c.type == POD_SCHEDULED and c.status == "False" and c.reason == reason and c.message == message
        for c in pod.status.conditions
    )
