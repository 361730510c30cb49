"""Namespaces, Services, controllers, and disruption budgets for tests. Their labels select the pods."""

from typing import Self

from longshore.api import (
    LabelSelector,
    Namespace,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    StatefulSetSpec,
)
from longshore.testing.metadata import MetadataBuilder, metadata, replace


class PodDisruptionBudgetBuilder(MetadataBuilder, PodDisruptionBudget):
    """A disruption budget whose methods return changed copies."""

    def allows(self, disruptions: int) -> Self:
        return replace(self, status=replace(self.status, disruptions_allowed=disruptions))

    def disrupted(self, *pods: str) -> Self:
        """Set the pods that are already being evicted."""
        since = dict.fromkeys(pods, "2026-01-01T00:00:00Z")
        return replace(self, status=replace(self.status, disrupted_pods=since))


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(metadata=metadata(name, **{"kubernetes.io/metadata.name": name}, **labels))


def service(name: str, *, namespace: str = "default", **selector: str) -> Service:
    return Service(metadata=metadata(name, namespace), spec=ServiceSpec(selector))


def replication_controller(
    name: str, *, namespace: str = "default", **selector: str
) -> ReplicationController:
    return ReplicationController(metadata=metadata(name, namespace), spec=ReplicationControllerSpec(selector))


def replica_set(name: str, *, namespace: str = "default", **labels: str) -> ReplicaSet:
    return ReplicaSet(metadata=metadata(name, namespace), spec=ReplicaSetSpec(LabelSelector(labels)))


def stateful_set(name: str, *, namespace: str = "default", **labels: str) -> StatefulSet:
    return StatefulSet(metadata=metadata(name, namespace), spec=StatefulSetSpec(LabelSelector(labels)))


def pdb(name: str, *, namespace: str = "default", **labels: str) -> PodDisruptionBudgetBuilder:
    """Return a budget that allows no disruption of the pods with these labels."""
    return PodDisruptionBudgetBuilder(
        metadata=metadata(name, namespace),
        spec=PodDisruptionBudgetSpec(LabelSelector(labels)),
        status=PodDisruptionBudgetStatus(),
    )
