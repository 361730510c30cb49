"""Reports about a pod: events and the PodScheduled condition, worded as kube-scheduler words them."""

from collections.abc import Callable

from longshore.api import Pod, PodCondition
from longshore.api.kept import kept_conditions
from longshore.framework import Status
from longshore.framework.effects import Nominate, RecordEvent, SetCondition, Tell

POD_SCHEDULED = "PodScheduled"
REASON_UNSCHEDULABLE = "Unschedulable"
REASON_SCHEDULER_ERROR = "SchedulerError"
EVENT_SCHEDULED = "Scheduled"
EVENT_FAILED_SCHEDULING = "FailedScheduling"
EVENT_PREEMPTED = "Preempted"


def report_bound(tell: Callable[[Tell], None], pod: Pod, node: str) -> None:
    note = f"Successfully assigned {pod.key} to {node}"
    tell(RecordEvent.of(pod, kind="Normal", reason=EVENT_SCHEDULED, action="Binding", note=note))


def skipped(pod: Pod) -> RecordEvent:
    """Return the event for a pod that is not tried because it is being deleted."""
    return warning(pod, f"skip schedule deleting pod: {pod.key}")


def warning(pod: Pod, note: str) -> RecordEvent:
    return RecordEvent.of(pod, kind="Warning", reason=EVENT_FAILED_SCHEDULING, action="Scheduling", note=note)


def report_failed(
    tell: Callable[[Tell], None], pod: Pod, status: Status, *, nominated_node: str | None = None
) -> None:
    """Report that an attempt failed, except for what the pod's status already says."""
    reason = REASON_UNSCHEDULABLE if status.rejected else REASON_SCHEDULER_ERROR
    tell(warning(pod, status.message))
    condition = PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=status.message,
        observed_generation=pod.metadata.generation,
    )
    if nominated_node == pod.status.nominated_node_name:
        nominated_node = None
    if condition not in kept_conditions(pod.status.conditions):
        tell(SetCondition.of(pod, condition, nominated_node))
    elif nominated_node is not None:
        tell(Nominate.of(pod, nominated_node))
