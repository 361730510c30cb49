"""All that a scheduler has to know of a cluster."""

from typing import Any

from longshore.kube import resources
from longshore.kube.resources import Resource

# Pods that have ended hold no room: to the scheduler they are deleted.
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
# All that kube-scheduler's plugins read besides pods and nodes.
OTHERS: tuple[Resource[Any], ...] = (
    resources.NAMESPACES,
    resources.SERVICES,
    resources.REPLICATION_CONTROLLERS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.POD_DISRUPTION_BUDGETS,
    resources.PERSISTENT_VOLUMES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.STORAGE_CLASSES,
    resources.CSI_NODES,
    resources.CSI_DRIVERS,
    resources.CSI_STORAGE_CAPACITIES,
    resources.VOLUME_ATTACHMENTS,
)
