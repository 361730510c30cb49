"""Nodes, with the fields that scheduling reads."""

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


class ContainerImage(ApiStruct):
    """An image on the node, with all of its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(ApiStruct):
    type: str = ""
    address: str = ""


class NodeStatus(ApiStruct):
    allocatable: dict[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()
    capacity: dict[str, str] = {}
    addresses: tuple[NodeAddress, ...] = ()


class Node(ApiObject):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)
