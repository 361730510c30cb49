"""Kinds other than pods and nodes, read from JSON as the API server writes it."""

import json
from typing import TypeVar

import msgspec

from longshore.api import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    LabelSelector,
    NodeSelectorRequirement,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
    selects,
)
from longshore.api.meta import ApiObject

T = TypeVar("T", bound=ApiObject)


def read(kind: type[T], **fields: object) -> T:
    body = {"metadata": {"name": "it", "creationTimestamp": "2026-01-01T00:00:00Z"}, **fields}
    return msgspec.json.decode(json.dumps(body), type=kind)


def test_selectors_of_workloads_are_read() -> None:
    selector = {"matchLabels": {"app": "web"}}
    assert read(Service, spec={"selector": {"app": "web"}}).spec.selector == {"app": "web"}
    assert read(Service, spec={"clusterIP": "None"}).spec.selector == {}
    assert read(ReplicaSet, spec={"selector": selector}).spec.selector == LabelSelector({"app": "web"})
    assert selects(read(StatefulSet, spec={"selector": selector}).spec.selector, {"app": "web"})


def test_a_disruption_budget_is_read() -> None:
    status = {
        "disruptionsAllowed": 2,
        "disruptedPods": {"web-1": "2026-01-01T00:00:00Z"},
        "currentHealthy": 3,
    }
    budget = read(PodDisruptionBudget, spec={"minAvailable": 1, "selector": {}}, status=status)
    assert budget.spec.selector == LabelSelector()
    assert budget.status.disruptions_allowed == 2
    assert "web-1" in budget.status.disrupted_pods
    assert read(PodDisruptionBudget).spec.selector is None


def test_a_persistent_volume_is_read() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "x", "name": "data", "uid": "1"},
        "storageClassName": "fast",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": "disk.example.com", "volumeHandle": "h1", "fsType": "ext4"},
        "awsElasticBlockStore": {"volumeID": "vol-1"},
        "azureDisk": {"diskName": "d", "diskURI": "/disks/d"},
        "gcePersistentDisk": {"pdName": "pd-1", "readOnly": True},
    }
    volume = read(PersistentVolume, spec=spec, status={"phase": "Bound"})
    assert volume.status.phase == "Bound"
    assert volume.spec.capacity == {"storage": "10Gi"}
    assert volume.spec.claim_ref is not None
    assert volume.spec.claim_ref.name == "data"
    assert volume.spec.csi is not None
    assert volume.spec.csi.volume_handle == "h1"
    assert volume.spec.aws_elastic_block_store is not None
    assert volume.spec.aws_elastic_block_store.volume_id == "vol-1"
    assert volume.spec.azure_disk is not None
    assert volume.spec.azure_disk.disk_uri == "/disks/d"
    assert volume.spec.gce_persistent_disk is not None
    assert volume.spec.gce_persistent_disk.pd_name == "pd-1"
    assert volume.spec.node_affinity is not None
    assert volume.spec.node_affinity.required is not None
    [found] = volume.spec.node_affinity.required.node_selector_terms
    assert found.match_expressions == (NodeSelectorRequirement("zone", "In", ("a",)),)


def test_claim_without_a_class_differs_from_one_of_the_class_without_a_name() -> None:
    assert read(PersistentVolumeClaim, spec={}).spec.storage_class_name is None
    spec = {"storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv"}
    claim = read(PersistentVolumeClaim, spec=spec)
    assert claim.spec.storage_class_name == ""
    assert claim.spec.resources.requests == {"storage": "1Gi"}
    assert claim.spec.volume_name == "pv"


def test_a_storage_class_is_read_with_its_topologies() -> None:
    places = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    built = read(
        StorageClass,
        provisioner="disk.example.com",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=places,
    )
    assert built.volume_binding_mode == "WaitForFirstConsumer"
    assert built.allowed_topologies[0].match_label_expressions[0].values == ("a", "b")


def test_drivers_are_read_with_their_capacity() -> None:
    drivers = [{"name": "a", "nodeID": "n", "allocatable": {"count": 0}}, {"name": "b", "nodeID": "n"}]
    a, b = read(CSINode, spec={"drivers": drivers}).spec.drivers
    assert a.allocatable is not None
    assert a.allocatable.count == 0
    assert b.allocatable is None
    assert read(CSIDriver, spec={"storageCapacity": True}).spec.storage_capacity
    capacity = read(
        CSIStorageCapacity,
        nodeTopology={"matchLabels": {"zone": "a"}},
        storageClassName="fast",
        capacity="10Gi",
        maximumVolumeSize="1Gi",
    )
    assert selects(capacity.node_topology, {"zone": "a"})
    assert (capacity.capacity, capacity.maximum_volume_size) == ("10Gi", "1Gi")
    spec = {"attacher": "a", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}
    attachment = read(VolumeAttachment, spec=spec)
    assert attachment.spec.source.persistent_volume_name == "pv"


def test_a_volume_knows_the_name_of_its_claim() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "config", "configMap": {"name": "config"}},
    ]
    pod = read(Pod, spec={"volumes": volumes})
    assert [volume.claim_of("web-0") for volume in pod.spec.volumes] == ["disk", "web-0-scratch", ""]


def test_the_controller_is_found_among_the_owners() -> None:
    owners = [{"kind": "Node", "name": "n1"}, {"kind": "ReplicaSet", "name": "web", "controller": True}]
    body = {"metadata": {"name": "web-1", "ownerReferences": owners}}
    pod = msgspec.json.decode(json.dumps(body), type=Pod)
    assert pod.metadata.controller is not None
    assert pod.metadata.controller.name == "web"
    assert read(Pod).metadata.controller is None
