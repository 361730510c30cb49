"""The kinds of objects that Longshore knows, and how each is reached on the API server.

A kind needs a struct in `longshore.api`, a row in this table, and rights in `deploy/`. Every scheduler
follows it if it is in `FOLLOWED_KINDS` of `longshore.framework.seam`; others are followed for the controllers
that name them in their `watches`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from longshore.api.config_map import ConfigMap
from longshore.api.meta import ApiObject
from longshore.api.pod_run import PodRun
from longshore.api.pod_set import SchedulePlan, ScheduleTrigger
from longshore.framework.seam import FOLLOWED_KINDS
from longshore.kube.codec import JsonCodec
from longshore.kube.resources import NODES, PODS, SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource

_STORAGE = "storage.k8s.io"

# Pods that have ended take no room: for the scheduler they are deleted.
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How objects of a kind are reached.

    `optional`: the API server may not know the kind, or not let us read it; its watch begins once it does.
    `writable`: plugins and controllers may read and write single objects of the kind.
    """

    resource: Resource[Any]
    field_selector: str = ""
    optional: bool = False
    writable: bool = False


def _json(kind: type[ApiObject], plural: str, **more: Any) -> Resource[Any]:
    """Return a resource that comes as JSON: good enough for objects that are few and change rarely."""
    return Resource(plural=plural, codec=JsonCodec(kind), **more)


KINDS: Mapping[type[ApiObject], Kind] = {
    Pod: Kind(resource=PODS, field_selector=NOT_ENDED, writable=True),
    Node: Kind(resource=NODES),
    Namespace: Kind(resource=_json(Namespace, "namespaces", namespaced=False)),
    Service: Kind(resource=_json(Service, "services")),
    ReplicationController: Kind(resource=_json(ReplicationController, "replicationcontrollers")),
    ReplicaSet: Kind(resource=_json(ReplicaSet, "replicasets", group="apps")),
    StatefulSet: Kind(resource=_json(StatefulSet, "statefulsets", group="apps")),
    PodDisruptionBudget: Kind(resource=_json(PodDisruptionBudget, "poddisruptionbudgets", group="policy")),
    PersistentVolume: Kind(
        resource=_json(PersistentVolume, "persistentvolumes", namespaced=False), writable=True
    ),
    PersistentVolumeClaim: Kind(
        resource=_json(PersistentVolumeClaim, "persistentvolumeclaims"), writable=True
    ),
    StorageClass: Kind(resource=_json(StorageClass, "storageclasses", group=_STORAGE, namespaced=False)),
    CSINode: Kind(resource=_json(CSINode, "csinodes", group=_STORAGE, namespaced=False)),
    CSIDriver: Kind(resource=_json(CSIDriver, "csidrivers", group=_STORAGE, namespaced=False)),
    CSIStorageCapacity: Kind(resource=_json(CSIStorageCapacity, "csistoragecapacities", group=_STORAGE)),
    VolumeAttachment: Kind(
        resource=_json(VolumeAttachment, "volumeattachments", group=_STORAGE, namespaced=False)
    ),
    ConfigMap: Kind(resource=_json(ConfigMap, "configmaps"), writable=True),
    # Watched for controllers only.
    ScheduleTrigger: Kind(resource=SCHEDULE_TRIGGERS, optional=True, writable=True),
    SchedulePlan: Kind(resource=SCHEDULE_PLANS, optional=True, writable=True),
    PodRun: Kind(resource=_json(PodRun, "pods", alias="pod-runs"), optional=True),
}

# What every scheduler follows besides pods and nodes.
OTHERS: tuple[Resource[Any], ...] = tuple(
    KINDS[kind].resource for kind in FOLLOWED_KINDS if kind not in (Pod, Node)
)
