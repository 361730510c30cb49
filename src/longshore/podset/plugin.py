"""PodSetPlanner: holds the pods of a set until its trigger fires, and sends them where the plan says.

A pod of a held set never enters the queue. A pod with an entry in the plan is tried on that node only; if the
node no longer fits, the pod is planned again.
"""

from collections.abc import Collection, Mapping, Sequence

from longshore.api import Pod
from longshore.api.pod_set import POD_SET_LABEL
from longshore.cluster import ClusterState, PodInfo
from longshore.errors import UserError
from longshore.framework import Code, CycleState, NodeStatuses, PostFilterResult, Status, Wait, WakeOn
from longshore.planning.handle import PlanningHandle
from longshore.podset.arguments import NAME, planner_settings
from longshore.podset.controller import PodSetController
from longshore.podset.texts import NOT_BOUND, PLANNED_AGAIN

_NOTHING = PostFilterResult(Status.unschedulable(""))


class PodSetPlanner:
    name = NAME
    # The controller activates its pods itself.
    wakes_on: Sequence[WakeOn] = ()

    def __init__(self, args: Mapping[str, object], handle: PlanningHandle) -> None:
        if any(isinstance(each, PodSetController) for each in handle.controllers):
            raise UserError(f"another profile has {NAME} already: two would write the same plans")
        self._sets = PodSetController(handle, planner_settings(args))
        handle.control(self._sets)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if _in_a_set(pod) and (why := self._sets.why_waits(pod)):
            return Status(Code.UNSCHEDULABLE, (why,))
        return None

    def pre_filter(
        self, state: CycleState, pod: PodInfo, cluster: ClusterState
    ) -> Status | Collection[str] | None:
        if not _in_a_set(pod.pod):
            return None
        self._sets.attempt_begins(pod.pod)
        if why := self._sets.why_waits(pod.pod):
            # Its label or its plan has changed since it entered the queue.
            return Status(Code.PENDING, (why,))
        node = self._sets.planned_node(pod.pod)
        if node is not None and self._sets.is_given_up(pod.pod):
            return Status.unschedulable(NOT_BOUND.format(node=node))
        return None if node is None else (node,)

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        if not _in_a_set(pod.pod) or self._sets.why_waits(pod.pod):
            return _NOTHING
        node = self._sets.planned_node(pod.pod)
        if node is None:
            return _NOTHING
        self._sets.refute(pod.pod, node)
        return PostFilterResult(Status.unschedulable(PLANNED_AGAIN.format(node=node)), nominated="")

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        if _in_a_set(pod.pod):
            self._sets.not_bound(pod.pod, node)

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status | Wait | None:
        return self._sets.permit(pod.pod, node) if _in_a_set(pod.pod) else None


def _in_a_set(pod: Pod) -> bool:
    return bool(pod.metadata.labels.get(POD_SET_LABEL))
