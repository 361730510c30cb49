"""NodePorts: two pods on one node cannot use the same host port of the same address."""

from longshore.api import Pod
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.ports import clash, host_ports
from longshore.framework import Action, CycleState, Rejection, Resource, Scope, WakeOn

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Filter: the host ports of the pod are free."""

    name = NAME
    scope = Scope.PODS

    def __init__(self) -> None:
        self.wakes_on = (
            WakeOn(Resource.POD, Action.DELETE, _frees_a_port, by_shape=True),
            WakeOn(Resource.NODE, Action.ADD),
        )

    def concerns(self, pod: PodInfo) -> bool:
        return bool(host_ports(pod.pod))

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        return [Rejection(REASON, nodes.ports_clash(host_ports(pod.pod)))]


def _frees_a_port(pod: Pod, old: Pod, new: Pod | None) -> bool:
    had_room = bool(old.spec.node_name or old.status.nominated_node_name)
    return had_room and clash(host_ports(pod), host_ports(old))
