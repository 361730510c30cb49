"""Resource claims: Longshore allocates no devices yet, and says so rather than let the pod wait for them."""

from longshore.cluster import ClusterState, PodInfo
from longshore.framework import Code, CycleState, NodeStatuses, PostFilterResult, Status, WakeOn

NAME = "DynamicResources"
REASON = "pod has resource claims, which are not supported yet"
REASON_NOTHING_TO_DEALLOCATE = "no new claims to deallocate"
ERROR_NOT_ASKED = "not found"


class DynamicResources:
    """PreFilter: the pod claims no resources. PostFilter has nothing to offer but kube-scheduler's words."""

    name = NAME

    def __init__(self) -> None:
        self.wakes_on: tuple[WakeOn, ...] = ()

    def concerns(self, pod: PodInfo) -> bool:
        return bool(pod.pod.spec.resource_claims)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        return Status.unresolvable(REASON) if self.concerns(pod) else None

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        """kube-scheduler's misses its notes, and says so, if another plugin turned the pod away before."""
        if self.concerns(pod):
            return PostFilterResult(Status.unschedulable())
        refusal = statuses.pre_filter
        if refusal is not None and refusal.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PostFilterResult(Status.error(ERROR_NOT_ASKED))
        return PostFilterResult(Status.unschedulable(REASON_NOTHING_TO_DEALLOCATE))
