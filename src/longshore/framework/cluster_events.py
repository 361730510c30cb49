"""Events that may make a rejected pod schedulable, and how a plugin says which of them do."""

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from longshore.api import Pod


class Resource(enum.Enum):
    """The kind of object that an event is about. The values are the names in kube-scheduler's metrics."""

    # Any pod. A plugin may name it; events are about one of the next two.
    POD = "Pod"
    # A pod that has a node, or had one before it was deleted.
    ASSIGNED_POD = "AssignedPod"
    # A pod without a node, such as the rejected pod itself.
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    # An event about it concerns every waiting pod. A plugin that names it wakes on every event.
    WILDCARD = "*"


class Action(enum.Flag):
    ADD = enum.auto()
    DELETE = enum.auto()
    UPDATE_NODE_ALLOCATABLE = enum.auto()
    UPDATE_NODE_LABEL = enum.auto()
    UPDATE_NODE_TAINT = enum.auto()
    UPDATE_NODE_CONDITION = enum.auto()
    UPDATE_NODE_ANNOTATION = enum.auto()
    UPDATE_NODE_DECLARED_FEATURE = enum.auto()
    UPDATE_POD_LABEL = enum.auto()
    # A pod requests less than before.
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = enum.auto()
    # Any other change.
    UPDATE_OTHER = enum.auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_OTHER
    )
    ALL = ADD | DELETE | UPDATE


# Returns whether the waiting pod may be schedulable now, given the object before and after the event: None
# before it was added, and after it was deleted.
Hint = Callable[[Pod, Any, Any], bool]


class WakeOn(msgspec.Struct, frozen=True):
    """Events of one resource that may make a pod schedulable which the plugin rejected.

    Without a hint each of these events may. With `by_shape` the plugin promises that its hint depends only on
    namespace, labels, owner and spec of the waiting pod, unless the event is about this pod. The hint is then
    called once for all pods that are alike.
    """

    resource: Resource
    actions: Action
    hint: Hint | None = None
    by_shape: bool = False

    def matches(self, event: "ClusterEvent") -> bool:
        """Whether the event is one of these. The hint is not called."""
        about = self.resource
        return bool(self.actions & event.action) and (
            about is event.resource
            or about is Resource.WILDCARD
            or event.resource is Resource.WILDCARD
            or (about is Resource.POD and event.resource in _PODS)
        )


class ClusterEvent(msgspec.Struct, frozen=True):
    """A change in the cluster, with the object before and after it."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None

    # The name of the event in metrics, if resource and action do not give it.
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The name of the event in kube-scheduler's metrics, such as `NodeAdd` or `AssignedPodDelete`."""
        return self.custom_label or f"{self.resource.value}{_LABELS.get(self.action, 'Update')}"


_PODS = frozenset({Resource.ASSIGNED_POD, Resource.UNSCHEDULED_POD})
_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
}
