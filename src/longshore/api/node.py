"""Nodes, as far as scheduling reads them."""

from longshore.api.meta import ApiObject, ApiStruct


class Taint(ApiStruct):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeCondition(ApiStruct):
    type: str = ""
    status: str = ""


class NodeSpec(ApiStruct):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(ApiStruct):
    allocatable: dict[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()


class Node(ApiObject):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)
