"""NodeUnschedulable: a cordoned node accepts only pods that tolerate the taint of cordoned nodes."""

from longshore.api import Node, Pod, Taint
from longshore.cluster import Nodes, PodInfo
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn

NAME = "NodeUnschedulable"
REASON = "node(s) were unschedulable"

# A pod that tolerates it may use a cordoned node, whether or not the node already has the taint.
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Filter: the node is not cordoned."""

    name = NAME
    scope = Scope.NODE

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(
                Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _node_became_schedulable, by_shape=True
            ),
            WakeOn(Resource.POD, Action.UPDATE_POD_TOLERATION, _pod_became_tolerant, by_shape=True),
        )

    def concerns(self, pod: PodInfo) -> bool:
        return not _tolerates_cordon(pod.pod)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        cordoned = nodes.take(nodes.cluster.unschedulable)
        return [Rejection(REASON, cordoned, unresolvable=True)] if cordoned.any() else []


def _tolerates_cordon(pod: Pod) -> bool:
    return any(toleration.tolerates(CORDONED) for toleration in pod.spec.tolerations)


def _node_became_schedulable(pod: Pod, old: Node | None, new: Node) -> bool:
    return not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def _pod_became_tolerant(pod: Pod, old: Pod | None, new: Pod) -> bool:
    return new.metadata.uid == pod.metadata.uid and _tolerates_cordon(new)
