"""Turns a change of an object into the cluster events that plugins wake on."""

from collections.abc import Iterator

from longshore.api import (
    Change,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from longshore.api.meta import ApiObject
from longshore.cluster import PodInfo
from longshore.cluster.pod_info import asks_alike
from longshore.framework import Action, ClusterEvent, Resource

# What was measured on the nodes has changed. For plugins that read measures, it is like an annotation.
MEASURED = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ANNOTATION, custom_label="Measurements")

_RESOURCES: dict[type, Resource] = {
    PersistentVolume: Resource.PERSISTENT_VOLUME,
    PersistentVolumeClaim: Resource.PERSISTENT_VOLUME_CLAIM,
    StorageClass: Resource.STORAGE_CLASS,
    CSINode: Resource.CSI_NODE,
    CSIDriver: Resource.CSI_DRIVER,
    CSIStorageCapacity: Resource.CSI_STORAGE_CAPACITY,
    VolumeAttachment: Resource.VOLUME_ATTACHMENT,
}


def node_events(old: Node | None, new: Node | None) -> Iterator[ClusterEvent]:
    if old is None or new is None:
        action = Action.ADD if old is None else Action.DELETE
        yield ClusterEvent(Resource.NODE, action, old, new)
        return
    for action, changed in (
        (Action.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (Action.UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (Action.UPDATE_NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (Action.UPDATE_NODE_CONDITION, _conditions(old) != _conditions(new)),
        (Action.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (Action.UPDATE_NODE_DECLARED_FEATURE, old.status.declared_features != new.status.declared_features),
    ):
        if changed:
            yield ClusterEvent(Resource.NODE, action, old, new)


def assigned_pod_events(old: Pod | None, new: Pod | None) -> Iterator[ClusterEvent]:
    """Yield the events for a change of a pod that has a node, or had one."""
    if old is None or new is None:
        action = Action.ADD if old is None else Action.DELETE
        yield ClusterEvent(Resource.ASSIGNED_POD, action, old, new)
        return
    for action in pod_updates(old, new):
        yield ClusterEvent(Resource.ASSIGNED_POD, action, old, new)


def pod_updates(old: Pod, new: Pod) -> list[Action]:
    """Return the kinds of update that the change is; `UPDATE_OTHER` if it is none of the particular ones."""
    actions = []
    if new.metadata.labels != old.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _asks_for_less(old, new):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API server only allows tolerations to be added.
    if len(new.spec.tolerations) != len(old.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    return actions or [Action.UPDATE_OTHER]


def other_event(kind: type[ApiObject], change: Change[ApiObject]) -> ClusterEvent | None:
    """Return the event for an object that is no pod and no node; None if no plugin can wake on its kind."""
    resource = _RESOURCES.get(kind)
    if resource is None:
        return None
    action = Action.UPDATE_OTHER
    if change.old is None:
        action = Action.ADD
    elif change.new is None:
        action = Action.DELETE
    return ClusterEvent(resource, action, change.old, change.new)


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _asks_for_less(old: Pod, new: Pod) -> bool:
    if asks_alike(old, new):
        return False
    asked = PodInfo.of(new).requests
    return any(asked.get(resource, 0) < amount for resource, amount in PodInfo.of(old).requests.items())
