"""Nodes for tests."""

from typing import Self

from longshore.api import ContainerImage, Node, NodeCondition, NodeStatus, Taint
from longshore.testing.metadata import MetadataBuilder, metadata, replace


class NodeBuilder(MetadataBuilder, Node):
    """A node whose methods return changed copies."""

    def allocatable(self, **amounts: str) -> Self:
        """Add to what the node offers to pods."""
        return self._with_status(allocatable={**self.status.allocatable, **amounts})

    def capacity(self, **amounts: str) -> Self:
        """Add to the capacity, some of which the node may reserve for the system."""
        return self._with_status(capacity={**self.status.capacity, **amounts})

    def unschedulable(self) -> Self:
        """Cordon the node."""
        return replace(self, spec=replace(self.spec, unschedulable=True))

    def not_ready(self) -> Self:
        return self._with_status(conditions=(NodeCondition(type="Ready", status="False"),))

    def taint(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """Add a taint."""
        taints = (*self.spec.taints, Taint(key=key, value=value, effect=effect))
        return replace(self, spec=replace(self.spec, taints=taints))

    def image(self, *names: str, size: int) -> Self:
        """Add an image of this size in bytes, with all of these names."""
        return self._with_status(images=(*self.status.images, ContainerImage(names, size)))

    def features(self, *names: str) -> Self:
        """Set the features that the node declares."""
        return self._with_status(declared_features=names)

    def _with_status(self, **fields: object) -> Self:
        return replace(self, status=replace(self.status, **fields))


def node(name: str) -> NodeBuilder:
    """Return a node that is ready and offers only room for 110 pods."""
    return NodeBuilder(
        metadata=metadata(name, **{"kubernetes.io/hostname": name}),
        status=NodeStatus(
            allocatable={"pods": "110"}, conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )
