"""The kinds of objects that Longshore knows, and how each is reached on the API server.

This table is the one place to add a kind to: one that a controller watches, or one whose objects a plugin or
controller reads and writes. The rights that it needs go into `deploy/`.
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
from longshore.kube import resources
from longshore.kube.resources import Resource

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


KINDS: Mapping[type[ApiObject], Kind] = {
    Pod: Kind(resource=resources.PODS, field_selector=NOT_ENDED, writable=True),
    Node: Kind(resource=resources.NODES),
    Namespace: Kind(resource=resources.NAMESPACES),
    Service: Kind(resource=resources.SERVICES),
    ReplicationController: Kind(resource=resources.REPLICATION_CONTROLLERS),
    ReplicaSet: Kind(resource=resources.REPLICA_SETS),
    StatefulSet: Kind(resource=resources.STATEFUL_SETS),
    PodDisruptionBudget: Kind(resource=resources.POD_DISRUPTION_BUDGETS),
    PersistentVolume: Kind(resource=resources.PERSISTENT_VOLUMES, writable=True),
    PersistentVolumeClaim: Kind(resource=resources.PERSISTENT_VOLUME_CLAIMS, writable=True),
    StorageClass: Kind(resource=resources.STORAGE_CLASSES),
    CSINode: Kind(resource=resources.CSI_NODES),
    CSIDriver: Kind(resource=resources.CSI_DRIVERS),
    CSIStorageCapacity: Kind(resource=resources.CSI_STORAGE_CAPACITIES),
    VolumeAttachment: Kind(resource=resources.VOLUME_ATTACHMENTS),
    ConfigMap: Kind(resource=resources.CONFIG_MAPS, writable=True),
    # Watched for controllers only.
    ScheduleTrigger: Kind(resource=resources.SCHEDULE_TRIGGERS, optional=True, writable=True),
    SchedulePlan: Kind(resource=resources.SCHEDULE_PLANS, optional=True, writable=True),
    PodRun: Kind(resource=resources.POD_RUNS, optional=True),
}

# What every scheduler follows besides pods and nodes.
OTHERS: tuple[Resource[Any], ...] = tuple(
    KINDS[kind].resource for kind in FOLLOWED_KINDS if kind not in (Pod, Node)
)
