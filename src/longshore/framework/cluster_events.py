"""Events that may let a rejected pod be scheduled after all, and who wants to hear of which."""

import enum
from collections.abc import Callable
from typing import Any

import msgspec

from longshore.api import Pod


class Resource(enum.Enum):
    """What an event is about. The values are the names in kube-scheduler's metrics."""

    # Any pod. Events are about one of the next two; a plugin may name all three.
    POD = "Pod"
    # A pod that has, or had, a node.
    ASSIGNED_POD = "AssignedPod"
    # A pod that waits for one, the rejected pod itself included.
    UNSCHEDULED_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    # As an event: matters to every waiting pod. Named by a plugin: every event matters to it.
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
    # A pod asks for less than before.
    UPDATE_POD_SCALE_DOWN = enum.auto()
    UPDATE_POD_TOLERATION = enum.auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = enum.auto()
    # A change of any other sort.
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


# Given the waiting pod and the object before and after (None before an addition, and after a deletion):
# whether the pod may be schedulable now.
Hint = Callable[[Pod, Any, Any], bool]


class WakeOn(msgspec.Struct, frozen=True):
    """Events of one resource that may cure a rejection by the plugin. Without a hint, each of them may.

    `by_shape` is the plugin's word that its hint looks at nothing of the waiting pod but namespace, labels,
    owner and spec, unless the event is about that very pod. Of many that are alike it is asked about one.
    """

    resource: Resource
    actions: Action
    hint: Hint | None = None
    by_shape: bool = False

    def matches(self, event: "ClusterEvent") -> bool:
        about = self.resource
        return bool(self.actions & event.action) and (
            about is event.resource
            or about is Resource.WILDCARD
            or event.resource is Resource.WILDCARD
            or (about is Resource.POD and event.resource in _PODS)
        )


class ClusterEvent(msgspec.Struct, frozen=True):
    """Something happened in the cluster, with the object before and after it."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None

    # What metrics call it, if not by resource and action.
    custom_label: str = ""

    @property
    def label(self) -> str:
        """As kube-scheduler's metrics name it, such as `NodeAdd` or `AssignedPodDelete`."""
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
