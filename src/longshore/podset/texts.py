"""What users read about sets: the messages of conditions and events."""

from longshore.api import Pod, PodCondition
from longshore.api.duration import parse_duration
from longshore.api.kept import kept_conditions
from longshore.api.pod_set import DEFAULT_PLANNER_LABEL, POD_SET_LABEL, QUIET_TIME_LABEL
from longshore.api.timestamps import format_timestamp
from longshore.engine.cycle.reporting import POD_SCHEDULED
from longshore.podset.conditions import seconds_of
from longshore.podset.members import GATE, Member, Why
from longshore.podset.sets import PodSet
from longshore.podset.stages import Stage

# Not Unschedulable, or autoscalers would add nodes for pods that only wait.
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
# The label of a set's planner service contains the set's name: these labels mean something else already.
RESERVED_LABELS = (DEFAULT_PLANNER_LABEL, POD_SET_LABEL, QUIET_TIME_LABEL)
RESERVED_NAME = (
    "{name} cannot have a planner service of its own, because the label {label} means something else; give "
    "the pod set another name"
)
BEING_PLANNED = "the pod's set is being planned"
GATE_GOES = f"the pod is planned, and its scheduling gate {GATE} is being removed"
PLANNED_AGAIN = "planned node {node} no longer fits: the set is planned again"
NOT_BOUND = "binding to the planned node {node} has failed several times"
NO_PLANNER = (
    "there is no planner service for the set, and no fallback is configured (plannerFallback: none): its "
    "pods are scheduled one by one, without a plan"
)
NO_PLANNER_FOR_THE_WHOLE = (
    "the set goes only as a whole, there is no planner service for it, and no fallback is configured "
    "(plannerFallback: none)"
)
NOT_STORED = "the plan of the set could not be stored: {why}"
GATED = "the set goes only as a whole, and {pod} has the scheduling gate {gate}"


def condition_of(podset: PodSet, member: Member, *, not_stored: str = "") -> Why | None:
    """Return why the pod waits, if its condition must tell. `not_stored` is why the plan cannot be stored."""
    match member.stage:
        case Stage.HELD | Stage.GATED if not podset.released:
            return Why(REASON_WAITING, why_held(podset, member.pod))
        case Stage.UNPLANNED | Stage.FOUND if not_stored:
            return Why(REASON_STORE, not_stored)
        case Stage.BARRED:
            return member.why
    return None


def why_waits(podset: PodSet, member: Member, *, not_stored: str = "") -> str:
    """Return why the pod is not in the queue, or an empty string if it may be."""
    if member.is_admitted:
        return ""
    if member.stage is Stage.PLANNED:
        return GATE_GOES
    why = condition_of(podset, member, not_stored=not_stored)
    return BEING_PLANNED if why is None else why.message


def other_gates(pod: Pod) -> list[str]:
    """The scheduling gates of the pod that the scheduler does not remove."""
    return [gate.name for gate in pod.spec.scheduling_gates if gate.name != GATE]


def why_gated(pod: Pod) -> str:
    """Return why an all-or-nothing set with this pod waits."""
    return GATED.format(pod=pod.metadata.name, gate=other_gates(pod)[0])


def why_held(podset: PodSet, pod: Pod | None = None) -> str:
    """Return why the pod is held, in words that are the same for all pods of the set.

    It does not change when a pod joins the set: else the conditions of all pods would change with it.
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
    """Whether the pod's status has this condition already."""
    return any(
        c.type == POD_SCHEDULED and c.status == "False" and c.reason == reason and c.message == message
        for c in kept_conditions(pod.status.conditions)
    )
