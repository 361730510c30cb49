"""Volumes on the real API server: the scheduler chooses them, and the real controller binds them."""

import json
from typing import Any

from tests.live.conftest import StartScheduler
from tests.live.pods import condition, create, manifest, placed, pods
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster

SELECTED_NODE = "volume.kubernetes.io/selected-node"


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Retain",
    }


def volume(name: str, *, node: str, of_class: str, claim: dict[str, Any] | None = None) -> dict[str, Any]:
    on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": of_class,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
    }
    if claim is not None:
        spec["claimRef"] = claim
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claim(name: str, *, of_class: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def using(name: str, *claims: str) -> dict[str, Any]:
    pod = manifest(name)
    pod["spec"]["volumes"] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return pod


def get(plane: ControlPlane, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plane.kubectl("get", kind, name, "-o", "json"))
    return found


def provision(plane: ControlPlane, name: str, *, of_class: str) -> str:
    """Create a volume for the claim on the selected node, as a provisioner does, and return the node."""
    made_for = get(plane, "pvc", name)
    node: str = made_for["metadata"]["annotations"][SELECTED_NODE]
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": name,
        "uid": made_for["metadata"]["uid"],
    }
    create(plane, "default", volume(f"made-for-{name}", node=node, of_class=of_class, claim=reference))
    return node


def selected(plane: ControlPlane, name: str) -> str:
    found: str = get(plane, "pvc", name)["metadata"].get("annotations", {}).get(SELECTED_NODE, "")
    return found


def test_a_claim_that_waits_gets_the_volume_that_is_there_and_the_pod_its_node(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=3, kwok=False)
    local = storage_class("local", "kubernetes.io/no-provisioner")
    create(plane, "default", local, volume("disk", node="node-1", of_class="local"))
    create(plane, "default", *(claim(f"data-{n}", of_class="local") for n in range(2)))
    start_scheduler(plane)
    create(plane, "default", using("first", "data-0"))
    eventually(lambda: placed(plane, "default"), lambda found: found == {"default/first": "node-1"})
    bound = get(plane, "pvc", "data-0")
    assert (bound["status"]["phase"], bound["spec"]["volumeName"]) == ("Bound", "disk")
    assert (
        get(plane, "pv", "disk")["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    )

    # The second pod waits until another volume exists.
    create(plane, "default", using("second", "data-1"))
    eventually(lambda: pods(plane, "default")["second"], condition)
    message = condition(pods(plane, "default")["second"])["message"]
    assert message.startswith(
        "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."
    )
    create(plane, "default", volume("another", node="node-2", of_class="local"))
    eventually(lambda: placed(plane, "default"), lambda found: found.get("default/second") == "node-2")


def test_a_volume_is_made_where_the_pod_is_to_go(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=2, kwok=False)
    create(plane, "default", storage_class("made", "example.com/test"), claim("data", of_class="made"))
    start_scheduler(plane)
    create(plane, "default", using("web", "data"))
    eventually(lambda: selected(plane, "data"))
    # Users and autoscalers see its expected node.
    eventually(lambda: pods(plane, "default")["web"]["status"], lambda found: found.get("nominatedNodeName"))
    assert placed(plane, "default") == {}
    # It does not block other pods.
    create(plane, "default", manifest("other"))
    eventually(lambda: placed(plane, "default"), lambda found: "default/other" in found)

    node = provision(plane, "data", of_class="made")
    eventually(lambda: placed(plane, "default"), lambda found: found.get("default/web") == node)
    assert "nominatedNodeName" not in pods(plane, "default")["web"]["status"]


def test_a_provisioner_that_gives_up_has_the_pod_tried_again(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = own_cluster(nodes=2, kwok=False)
    create(plane, "default", storage_class("made", "example.com/test"), claim("data", of_class="made"))
    start_scheduler(plane)
    create(plane, "default", using("web", "data"))
    eventually(lambda: selected(plane, "data"))
    # The provisioner removes the annotation: the node is no longer possible.
    first = selected(plane, "data")
    plane.kubectl("cordon", first)
    plane.kubectl("annotate", "pvc", "data", f"{SELECTED_NODE}-")
    eventually(lambda: selected(plane, "data"), lambda found: found not in ("", first))
    told = condition(pods(plane, "default")["web"])
    assert (told["reason"], told["message"]) == (
        "SchedulerError",
        'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"',
    )
    second = provision(plane, "data", of_class="made")
    eventually(lambda: placed(plane, "default"), lambda found: found == {"default/web": second})
