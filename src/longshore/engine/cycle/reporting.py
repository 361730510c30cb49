"""What people are told about a pod: events and the PodScheduled condition, in kube-scheduler's words."""

from collections.abc import Generator

from longshore.api import Pod, PodCondition
from longshore.framework import Status
from longshore.framework.effects import Effect, Nominate, Outcome, RecordEvent, SetCondition

POD_SCHEDULED = "PodScheduled"
REASON_UNSCHEDULABLE = "Unschedulable"
REASON_SCHEDULER_ERROR = "SchedulerError"
EVENT_SCHEDULED = "Scheduled"
EVENT_FAILED_SCHEDULING = "FailedScheduling"
EVENT_PREEMPTED = "Preempted"

_Told = Generator[Effect, Outcome, None]


def bound(pod: Pod, node: str) -> _Told:
    note = f"Successfully assigned {pod.key} to {node}"
    yield RecordEvent.of(pod, kind="Normal", reason=EVENT_SCHEDULED, action="Binding", note=note)


def skipped(pod: Pod) -> RecordEvent:
    """Its turn would have come, but it is being deleted."""
    return warning(pod, f"skip schedule deleting pod: {pod.key}")


def warning(pod: Pod, note: str) -> RecordEvent:
    return RecordEvent.of(pod, kind="Warning", reason=EVENT_FAILED_SCHEDULING, action="Scheduling", note=note)


def failed(pod: Pod, status: Status, *, nominated_node: str | None = None) -> _Told:
    """An attempt failed. What the pod's status says already is not written again."""
    reason = REASON_UNSCHEDULABLE if status.rejected else REASON_SCHEDULER_ERROR
    yield warning(pod, status.message)
    condition = PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=status.message,
        observed_generation=pod.metadata.generation,
    )
    if nominated_node == pod.status.nominated_node_name:
        nominated_node = None
    if condition not in pod.status.conditions:
        yield SetCondition.of(pod, condition, nominated_node)
    elif nominated_node is not None:
        yield Nominate.of(pod, nominated_node)
