"""All that a scheduler has to know of a cluster."""

from collections.abc import Mapping
from typing import Any

from longshore.api.meta import ApiObject
from longshore.api.pod_run import PodRun
from longshore.api.pod_set import SchedulePlan, ScheduleTrigger
from longshore.kube import resources
from longshore.kube.resources import Resource

# Kinds that controllers may ask for: brought in by our own CRDs, or of no use to anybody else.
CUSTOM: Mapping[type[ApiObject], Resource[Any]] = {
    ScheduleTrigger: resources.SCHEDULE_TRIGGERS,
    SchedulePlan: resources.SCHEDULE_PLANS,
    PodRun: resources.POD_RUNS,
}
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
