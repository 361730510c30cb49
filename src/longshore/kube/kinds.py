"""The kinds of objects that a scheduler follows."""

from collections.abc import Mapping
from typing import Any

from longshore.api.meta import ApiObject
from longshore.api.pod_run import PodRun
from longshore.api.pod_set import SchedulePlan, ScheduleTrigger
from longshore.kube import resources
from longshore.kube.resources import Resource

# Kinds that only controllers ask for, such as those of our own CRDs.
CUSTOM: Mapping[type[ApiObject], Resource[Any]] = {
    ScheduleTrigger: resources.SCHEDULE_TRIGGERS,
    SchedulePlan: resources.SCHEDULE_PLANS,
    PodRun: resources.POD_RUNS,
}
# Pods that have ended occupy no room: for the scheduler they are deleted.
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
