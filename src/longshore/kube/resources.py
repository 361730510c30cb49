"""The resources of the API server: their group, version, and plural, and how their objects are decoded."""

from functools import partial
from typing import Generic, TypeVar

import msgspec

from longshore.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    SchedulePlan,
    ScheduleTrigger,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from longshore.api.config_map import ConfigMap
from longshore.api.meta import ApiObject
from longshore.api.pod_run import PodRun
from longshore.api.pod_set import GROUP, VERSION
from longshore.framework.reads import EVERYTHING, NOTHING, Reads, kept_of
from longshore.kube.codec import Codec, JsonCodec
from longshore.kube.protobuf import ProtobufCodec, decode_node, decode_pod

T = TypeVar("T", bound=ApiObject)


class Resource(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A kind of object on the API server.

    WIDGETS = Resource(group="example.com", version="v1", plural="widgets", codec=JsonCodec(Widget))
    """

    plural: str
    codec: Codec[T]
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    # The name to show, if another resource has the same plural.
    alias: str = ""

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of the collection (of one namespace or of all), an object, or a subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        path = f"{root}{scope}/{self.plural}"
        if name:
            path += f"/{name}"
        if subresource:
            path += f"/{subresource}"
        return path

    def __str__(self) -> str:
        return self.alias or (f"{self.plural}.{self.group}" if self.group else self.plural)


PODS = Resource(plural="pods", codec=ProtobufCodec(decode_pod))
WHOLE_PODS = Resource(plural="pods", codec=ProtobufCodec(partial(decode_pod, kept=kept_of(EVERYTHING))))
POD_RUNS = Resource(plural="pods", codec=JsonCodec(PodRun), alias="pod-runs")
NODES = Resource(plural="nodes", codec=ProtobufCodec(decode_node), namespaced=False)

# There are few of these compared with pods, and they change rarely, so JSON is good enough.
NAMESPACES = Resource(plural="namespaces", codec=JsonCodec(Namespace), namespaced=False)
SERVICES = Resource(plural="services", codec=JsonCodec(Service))
CONFIG_MAPS = Resource(plural="configmaps", codec=JsonCodec(ConfigMap))
REPLICATION_CONTROLLERS = Resource(plural="replicationcontrollers", codec=JsonCodec(ReplicationController))
PERSISTENT_VOLUMES = Resource(plural="persistentvolumes", codec=JsonCodec(PersistentVolume), namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource(plural="persistentvolumeclaims", codec=JsonCodec(PersistentVolumeClaim))

REPLICA_SETS = Resource(group="apps", plural="replicasets", codec=JsonCodec(ReplicaSet))
STATEFUL_SETS = Resource(group="apps", plural="statefulsets", codec=JsonCodec(StatefulSet))

POD_DISRUPTION_BUDGETS = Resource(
    group="policy", plural="poddisruptionbudgets", codec=JsonCodec(PodDisruptionBudget)
)

_STORAGE = "storage.k8s.io"
STORAGE_CLASSES = Resource(
    group=_STORAGE, plural="storageclasses", codec=JsonCodec(StorageClass), namespaced=False
)
CSI_NODES = Resource(group=_STORAGE, plural="csinodes", codec=JsonCodec(CSINode), namespaced=False)
CSI_DRIVERS = Resource(group=_STORAGE, plural="csidrivers", codec=JsonCodec(CSIDriver), namespaced=False)
CSI_STORAGE_CAPACITIES = Resource(
    group=_STORAGE, plural="csistoragecapacities", codec=JsonCodec(CSIStorageCapacity)
)
VOLUME_ATTACHMENTS = Resource(
    group=_STORAGE, plural="volumeattachments", codec=JsonCodec(VolumeAttachment), namespaced=False
)

SCHEDULE_TRIGGERS = Resource(
    group=GROUP, version=VERSION, plural="scheduletriggers", codec=JsonCodec(ScheduleTrigger)
)
SCHEDULE_PLANS = Resource(group=GROUP, version=VERSION, plural="scheduleplans", codec=JsonCodec(SchedulePlan))


def pods_with(reads: Reads) -> Resource[Pod]:
    """Return pods with the annotations and conditions that plugins read."""
    if reads == NOTHING:
        return PODS
    return Resource(plural="pods", codec=ProtobufCodec(partial(decode_pod, kept=kept_of(reads))))
