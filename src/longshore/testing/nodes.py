"""Nodes for tests."""

from typing import Self

from longshore.api import ContainerImage, Node, NodeCondition, NodeStatus, Taint
from longshore.testing.metadata import MetadataBuilder, metadata, replace


class NodeBuilder(MetadataBuilder, Node):
    """A node whose methods return changed copies."""

    def allocatable(self, **amounts: str) -> Self:
        """What it offers to pods, besides what was said before."""
        return self._with_status(allocatable={**self.status.allocatable, **amounts})

    def capacity(self, **amounts: str) -> Self:
        """What it has, some of which it may keep for itself."""
        return self._with_status(capacity={**self.status.capacity, **amounts})

    def unschedulable(self) -> Self:
        """Cordoned."""
        return replace(self, spec=replace(self.spec, unschedulable=True))

    def not_ready(self) -> Self:
        return self._with_status(conditions=(NodeCondition(type="Ready", status="False"),))

    def taint(self, key: str, value: str = "", *, effect: str = "NoSchedule") -> Self:
        """One more taint."""
        taints = (*self.spec.taints, Taint(key=key, value=value, effect=effect))
        return replace(self, spec=replace(self.spec, taints=taints))

    def image(self, *names: str, size: int) -> Self:
        """One more image that it holds, of so many bytes, under all of these names."""
        return self._with_status(images=(*self.status.images, ContainerImage(names, size)))

    def features(self, *names: str) -> Self:
        """The features that it declares to have."""
        return self._with_status(declared_features=names)

    def _with_status(self, **fields: object) -> Self:
        return replace(self, status=replace(self.status, **fields))


def node(name: str) -> NodeBuilder:
    """A node that is ready and offers nothing yet but room for 110 pods."""
    return NodeBuilder(
        metadata=metadata(name, **{"kubernetes.io/hostname": name}),
        status=NodeStatus(
            allocatable={"pods": "110"}, conditions=(NodeCondition(type="Ready", status="True"),)
        ),
    )
