"""Resource claims: Longshore allocates no devices yet, and says so rather than let the pod wait for them."""

from longshore.cluster import ClusterState, PodInfo
from longshore.framework import CycleState, Status, WakeOn

NAME = "DynamicResources"
REASON = "pod has resource claims, which are not supported yet"


class DynamicResources:
    """PreFilter: the pod claims no resources."""

    name = NAME

    def __init__(self) -> None:
        self.wakes_on: tuple[WakeOn, ...] = ()

    def concerns(self, pod: PodInfo) -> bool:
        return bool(pod.pod.spec.resource_claims)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status | None:
        return Status.unresolvable(REASON) if self.concerns(pod) else None
