"""The objects that group pods: namespaces, Services, workload controllers, and PodDisruptionBudgets."""

from longshore.api.meta import ApiObject, ApiStruct
from longshore.api.selectors import LabelSelector


class Namespace(ApiObject):
    """Only its labels are read."""


class ServiceSpec(ApiStruct):
    selector: dict[str, str] = {}


class Service(ApiObject):
    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(ApiStruct):
    selector: dict[str, str] = {}


class ReplicationController(ApiObject):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class ReplicaSetSpec(ApiStruct):
    selector: LabelSelector | None = None


class ReplicaSet(ApiObject):
    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(ApiStruct):
    selector: LabelSelector | None = None


class StatefulSet(ApiObject):
    spec: StatefulSetSpec = StatefulSetSpec()


class PodDisruptionBudgetSpec(ApiStruct):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(ApiStruct):
    disruptions_allowed: int = 0
    # The pods whose eviction was granted but has not completed yet, each with the time of the eviction.
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(ApiObject):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
