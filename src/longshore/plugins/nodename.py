"""NodeName: a pod that names a node runs on that node or nowhere."""

from longshore.cluster import Nodes, PodInfo
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn

NAME = "NodeName"
REASON = "node(s) didn't match the requested node name"

_NO_ROW = -1


class NodeName:
    """Filter: the node is the one that the pod names, if it names one."""

    name = NAME
    scope = Scope.NODE

    def __init__(self) -> None:
        self.wakes_on = (WakeOn(Resource.NODE, Action.ADD),)

    def concerns(self, pod: PodInfo) -> bool:
        return bool(pod.pod.spec.node_name)

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        row = nodes.cluster.row(pod.pod.spec.node_name)
        return [Rejection(REASON, nodes.numbers != (_NO_ROW if row is None else row), unresolvable=True)]
