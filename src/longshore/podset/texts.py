"""What people are told about sets: the words of conditions and events."""

from longshore.api import Pod, PodCondition
from longshore.api.duration import parse_duration
from longshore.api.kept import kept_conditions
from longshore.api.pod_set import DEFAULT_PLANNER_LABEL, POD_SET_LABEL, QUIET_TIME_LABEL
from longshore.api.timestamps import format_timestamp
from longshore.engine.cycle.reporting import POD_SCHEDULED
from longshore.podset.conditions import seconds_of
from longshore.podset.sets import PodSet

# Not Unschedulable: autoscalers would add nodes for pods that merely wait.
REASON_WAITING = "WaitingForTrigger"
REASON_PLANNER = "WaitingForPlanner"
REASON_GATES = "WaitingForGates"
REASON_STORE = "WaitingForPlan"

NO_TRIGGER = "pod set {name} has no trigger: create a ScheduleTrigger with the label {label}={name}"
HELD = "pod set {name} is held by its trigger {trigger} until its state is Schedule"
HELD_QUIET = (
    "pod set {name} is held by its trigger {trigger} until the quiet time of {quiet} is over{earliest} (see "
    "the trigger's status.fireAt)"
)
EARLIEST = ", not before {time}"
# The label of a set's planner service is made of the set's name: these mean something else already.
RESERVED_LABELS = (DEFAULT_PLANNER_LABEL, POD_SET_LABEL, QUIET_TIME_LABEL)
RESERVED_NAME = (
    "{name} is no good name for a pod set: a planner service of its own would have the label {label}, which "
    "means something else; give the set another name"
)
BEING_PLANNED = "the pod's set is being planned"
PLANNED_AGAIN = "planned node {node} will not do any more: the set is planned again"
NOT_BOUND = "binding to the planned node {node} has failed again and again"
NO_PLANNER = (
    "there is no planner service for the set, and nobody stands in (plannerFallback is none): its pods are "
    "scheduled one by one, without a plan"
)
NO_PLANNER_FOR_THE_WHOLE = (
    "the set goes only as a whole, there is no planner service for it, and nobody stands in (plannerFallback "
    "is none)"
)
NOT_STORED = "the plan of the set could not be stored: {why}"
GATED = "the set goes only as a whole, and {pod} has the scheduling gate {gate}"


def why_held(podset: PodSet, pod: Pod | None = None) -> str:
    """What the pod is told, or what concerns all of the set alike.

    It stays the same when others join the set: else every pod would have to be told again, each time.
    """
    trigger = podset.trigger
    if trigger is None:
        return NO_TRIGGER.format(name=podset.name, label=POD_SET_LABEL)
    quiet = trigger.metadata.labels.get(QUIET_TIME_LABEL, "")
    seconds = parse_duration(quiet)
    if seconds is None:
        return HELD.format(name=podset.name, trigger=trigger.metadata.name)
    times = (trigger.metadata.creation_timestamp, trigger.status.planning_since)
    since = max(
        seconds_of(time) or 0.0 for time in (*times, pod.metadata.creation_timestamp if pod else None)
    )
    earliest = EARLIEST.format(time=format_timestamp(since + seconds)) if pod is not None and since else ""
    return HELD_QUIET.format(name=podset.name, trigger=trigger.metadata.name, quiet=quiet, earliest=earliest)


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
        for c in kept_conditions(pod.status.conditions)
    )
