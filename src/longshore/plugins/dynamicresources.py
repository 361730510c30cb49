"""DynamicResources: rejects pods with resource claims, because Longshore does not allocate devices yet."""

from longshore.cluster import ClusterState, PodInfo
from longshore.framework import Code, CycleState, NodeStatuses, PostFilterResult, Status, WakeOn

NAME = "DynamicResources"
REASON = "pod has resource claims, which are not supported yet"
REASON_NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
ERROR_NOT_ASKED = "not found"


class DynamicResources:
    """PreFilter: rejects pods with resource claims. PostFilter: returns kube-scheduler's message."""

    name = NAME

    def __init__(self) -> None:
        self.wakes_on: tuple[WakeOn, ...] = ()

    def concerns(self, pod: PodInfo) -> bool:
        return bool(pod.pod.spec.resource_claims)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        return Status.unresolvable(REASON) if self.concerns(pod) else None

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        """Return kube-scheduler's message: "not found" if an earlier PreFilter plugin rejected the pod.

        In that case kube-scheduler's plugin finds no state of its own, and reports that.
        """
        if self.concerns(pod):
            return PostFilterResult(Status.unschedulable())
        refusal = statuses.pre_filter
        if refusal is not None and refusal.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterResult(Status.error(ERROR_NOT_ASKED))
        return PostFilterResult(Status.unschedulable(REASON_NOTHING_TO_DEALLOCATE))
