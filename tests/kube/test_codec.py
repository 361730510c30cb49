"""Decoding: JSON and protobuf agree, and invalid objects are reported without affecting others."""

import json

import msgspec
import pytest

from longshore.api import Node, Pod, PodCondition, Volume
from longshore.api.kept import kept_conditions
from longshore.dev import ControlPlane
from longshore.framework.reads import NOTHING, Reads, kept_of
from longshore.kube._pb import kubernetes_pb2 as pb
from longshore.kube.client import Client
from longshore.kube.codec import Bookmark, Broken, JsonCodec, Undecodable
from longshore.kube.config import load
from longshore.kube.errors import ApiStatus
from longshore.kube.protobuf import ProtobufCodec, decode_node, decode_pod
from longshore.kube.resources import NODES, PODS

# Every field of a pod that is decoded, as far as the API server accepts them together. After a change of its
# spec the pod has generation 2, so its container statuses are read.
FULL_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: full
  labels: {app: web, tier: front}
  ownerReferences:
    - {apiVersion: v1, kind: Namespace, name: kube-system, uid: UID, controller: true}
spec:
  automountServiceAccountToken: false
  hostNetwork: true
  hostUsers: true
  restartPolicy: Never
  schedulerName: nobody
  priorityClassName: system-node-critical
  nodeSelector: {disk: ssd}
  schedulingGates: [{name: example.com/wait}]
  resources: {requests: {cpu: "4", memory: 1Gi}, limits: {cpu: "8"}}
  resourceClaims:
    - {name: gpu, resourceClaimName: gpu-1}
    - {name: nic, resourceClaimTemplateName: nics}
  volumes:
    - {name: claim, persistentVolumeClaim: {claimName: data, readOnly: true}}
    - {name: own, ephemeral: {volumeClaimTemplate: {spec:
        {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
    - {name: gce, gcePersistentDisk: {pdName: pd-1, readOnly: true}}
    - {name: aws, awsElasticBlockStore: {volumeID: vol-1}}
    - {name: iscsi, iscsi: {targetPortal: "192.0.2.1:3260", iqn: "iqn.2001-04.com.example:disk", lun: 1}}
    - {name: rbd, rbd: {monitors: ["192.0.2.1:6789"], image: disk, pool: fast, readOnly: true}}
    - {name: azure, azureDisk: {diskName: d, diskURI: "https://example.com/d"}}
    - {name: cinder, cinder: {volumeID: vol-2}}
    - {name: portworx, portworxVolume: {volumeID: vol-3}}
    - {name: csi, csi: {driver: disk.example.com}}
    - {name: image, image: {reference: "example.com/model:1"}}
  initContainers:
    - {name: setup, image: none, resources: {requests: {cpu: 100m}}}
    - {name: sidecar, image: none, restartPolicy: Always, resources: {requests: {memory: 64Mi}}}
  containers:
    - name: main
      image: example.com/web:1
      ports:
        - {containerPort: 8080, hostPort: 8080, hostIP: 127.0.0.1, protocol: TCP}
        - {containerPort: 53, protocol: UDP}
      resources: {requests: {cpu: 500m, memory: 64Mi, example.com/gpu: "1"}, limits: {example.com/gpu: "1"}}
    - name: plain
      image: none
      restartPolicy: Never
      restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]
  tolerations:
    - {key: dedicated, operator: Equal, value: web, effect: NoSchedule}
    - {operator: Exists, effect: NoExecute, tolerationSeconds: 0}
  topologySpreadConstraints:
    - maxSkew: 2
      topologyKey: zone
      whenUnsatisfiable: DoNotSchedule
      minDomains: 3
      nodeAffinityPolicy: Ignore
      nodeTaintsPolicy: Honor
      matchLabelKeys: [tier]
      labelSelector: {matchLabels: {app: web}}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{key: disk, operator: In, values: [ssd, nvme]}]
            matchFields: [{key: metadata.name, operator: NotIn, values: [node-9]}]
      preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 7, preference: {matchExpressions: [{key: fast, operator: Exists}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: zone
          namespaces: [a, b]
          labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [db]}]}
          matchLabelKeys: [tier]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 3
          podAffinityTerm:
            {topologyKey: host, labelSelector: {matchLabels: {app: web}}, namespaceSelector: {}}
"""


FULL_POD_STATUS = {
    "phase": "Pending",
    "nominatedNodeName": "node-0",
    "startTime": "2026-01-01T00:00:05Z",
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "observedGeneration": 2}
    ],
    "containerStatuses": [
        {
            "name": "main",
            "image": "example.com/web:1",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "allocatedResources": {"cpu": "250m"},
            "resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}},
        },
        {"name": "plain", "image": "none", "imageID": "", "ready": False, "restartCount": 0, "resources": {}},
    ],
    "initContainerStatuses": [
        {"name": "setup", "image": "none", "imageID": "", "ready": False, "restartCount": 0},
    ],
    "resources": {"requests": {"cpu": "3"}},
    "allocatedResources": {"cpu": "3"},
    "resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "web-nic-x"}],
}


VOLUME_SOURCES = {f.name for f in msgspec.structs.fields(Volume)} - {"name"}


def unset(struct: msgspec.Struct) -> set[str]:
    return {f.name for f in msgspec.structs.fields(struct) if not getattr(struct, f.name)}


async def test_json_and_protobuf_give_the_same_pod(control_plane: ControlPlane, namespace: str) -> None:
    kubectl = control_plane.kubectl
    # The garbage collector would delete a pod whose owner does not exist.
    owner = kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    full_pod = FULL_POD.replace("full", namespace).replace("UID", owner)
    kubectl("create", "-n", "kube-system", "-f", "-", input=full_pod)
    more_selective = json.dumps({"spec": {"nodeSelector": {"zone": "a"}}})
    kubectl("patch", "pod", "-n", "kube-system", namespace, "-p", more_selective)
    status = json.dumps({"status": FULL_POD_STATUS})
    kubectl("patch", "pod", "-n", "kube-system", namespace, "--subresource=status", "-p", status)
    path = PODS.path(namespace="kube-system")
    params = {"fieldSelector": f"metadata.name={namespace}"}
    async with Client(load(control_plane.kubeconfig)) as client:
        as_json = await client.request("GET", path, params=params)
        as_protobuf = await client.request("GET", path, params=params, accept=PODS.codec.accept_list)
    kubectl("delete", "pod", "-n", "kube-system", namespace, "--now")
    [from_json] = JSON.page(as_json).items
    [from_protobuf] = PODS.codec.page(as_protobuf).items
    assert from_protobuf == kept_of(NOTHING).pod(from_json)
    assert unset(from_json.spec) == {"node_name", "overhead"}
    assert unset(from_json.status) == set()
    assert unset(from_json.metadata) == {"annotations", "deletion_timestamp"}
    sources = [VOLUME_SOURCES - unset(volume) for volume in from_json.spec.volumes]
    assert set().union(*sources) == VOLUME_SOURCES
    affinity = from_json.spec.affinity
    assert affinity is not None
    assert None not in (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)


FULL_NODE_STATUS = {
    "images": [
        {"names": ["example.com/web:1", "example.com/web@sha256:0"], "sizeBytes": 5_000_000_000},
        {"names": ["example.com/db:1"], "sizeBytes": 1},
    ],
    "declaredFeatures": ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"],
    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "tainted"}],
}


async def test_json_and_protobuf_give_the_same_nodes(control_plane: ControlPlane) -> None:
    control_plane.add_nodes(1, prefix="tainted-")
    status = json.dumps({"status": FULL_NODE_STATUS})
    control_plane.kubectl("patch", "node", "tainted-0", "--subresource=status", "-p", status)
    control_plane.kubectl("annotate", "node", "tainted-0", "example.com/note=one")
    control_plane.kubectl("taint", "node", "tainted-0", "dedicated=web:NoSchedule")
    control_plane.kubectl("cordon", "tainted-0")
    async with Client(load(control_plane.kubeconfig)) as client:
        as_json = JsonCodec(Node).page(await client.request("GET", NODES.path()))
        # Controllers keep changing nodes, so both must be read at the same version.
        moment = {"resourceVersion": as_json.resource_version, "resourceVersionMatch": "Exact"}
        body = await client.request("GET", NODES.path(), params=moment, accept=NODES.codec.accept_list)
        as_protobuf = NODES.codec.page(body)
    control_plane.kubectl("delete", "node", "tainted-0")
    assert as_json.items == as_protobuf.items
    [full] = [node for node in as_json.items if node.metadata.name == "tainted-0"]
    assert unset(full.spec) == unset(full.status) == set()
    assert full.metadata.annotations["example.com/note"] == "one"


def frame(kind: str, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def envelope(kind: str, message: bytes) -> bytes:
    wrapped = b"k8s\0" + pb.Unknown(raw=message).SerializeToString()
    return pb.WatchEvent(type=kind, object=pb.RawExtension(raw=wrapped)).SerializeToString()


JSON = JsonCodec(Pod)
PROTOBUF = ProtobufCodec(decode_pod)


def test_a_json_event_with_a_wrong_structure_names_the_object() -> None:
    broken = {
        "metadata": {"name": "web", "namespace": "x", "resourceVersion": "7"},
        "spec": {"priority": "high"},
    }
    kind, item = JSON.event(frame("ADDED", broken))
    assert kind == "ADDED"
    assert isinstance(item, Broken)
    assert (item.key, item.resource_version) == ("x/web", "7")
    assert "priority" in item.message


def test_a_json_list_keeps_valid_objects_next_to_broken_ones() -> None:
    body = {
        "metadata": {"resourceVersion": "9"},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": 1}],
    }
    page = JSON.page(json.dumps(body).encode())
    assert [item.key for item in page.items] == ["a"]
    assert page.undecodable == ["b: Expected `object`, got `int` - at `$.spec`"]


def test_a_list_without_items_is_empty() -> None:
    assert JSON.page(b'{"metadata": {"resourceVersion": "3"}, "items": null}').items == []


@pytest.mark.parametrize(
    "rubbish", [b"", b"{", b"[]", b'{"type": "ADDED"}', b"\xff\xfe", b'{"type": 3, "object": {}}']
)
def test_invalid_json_is_undecodable(rubbish: bytes) -> None:
    with pytest.raises(Undecodable):
        JSON.event(rubbish)


@pytest.mark.parametrize("rubbish", [b"", b"\xff\xff\xff", b"<html>", envelope("ADDED", b"")[:-3]])
def test_invalid_protobuf_is_undecodable(rubbish: bytes) -> None:
    with pytest.raises(Undecodable):
        PROTOBUF.event(rubbish)


def test_a_protobuf_object_of_invalid_bytes_is_broken() -> None:
    _, item = PROTOBUF.event(envelope("ADDED", b"\x0a\xff\xff\xff"))
    assert isinstance(item, Broken)


def test_a_bookmark_marks_the_end_of_the_initial_events() -> None:
    meta = {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert JSON.event(frame("BOOKMARK", {"metadata": meta})) == ("BOOKMARK", Bookmark("12", True))
    message = pb.Bookmark(metadata=pb.BookmarkMeta(resource_version="12"))
    message.metadata.annotations["k8s.io/initial-events-end"] = "true"
    assert PROTOBUF.event(envelope("BOOKMARK", message.SerializeToString())) == (
        "BOOKMARK",
        Bookmark("12", True),
    )


def test_an_error_in_the_stream_has_its_status() -> None:
    status = {
        "code": 429,
        "reason": "TooManyRequests",
        "message": "later",
        "details": {"retryAfterSeconds": 3},
    }
    message = pb.Status(code=429, reason="TooManyRequests", message="later")
    message.details.retry_after_seconds = 3
    for _, item in (
        JSON.event(frame("ERROR", status)),
        PROTOBUF.event(envelope("ERROR", message.SerializeToString())),
    ):
        assert isinstance(item, ApiStatus)
        error = item.error()
        assert (error.status, error.reason, error.retry_after) == (429, "TooManyRequests", 3.0)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_frames_are_found_in_chunks_of_any_size(size: int) -> None:
    json_frames = [frame("ADDED", {"metadata": {"name": str(n)}}) for n in range(20)]
    pb_frames = [
        envelope("ADDED", pb.Pod(metadata=pb.ObjectMeta(name=str(n))).SerializeToString()) for n in range(20)
    ]
    wire_json = b"".join(f + b"\n" for f in json_frames)
    wire_pb = b"".join(len(f).to_bytes(4) + f for f in pb_frames)
    for codec, wire, expected in ((JSON, wire_json, json_frames), (PROTOBUF, wire_pb, pb_frames)):
        buffer = bytearray()
        found: list[bytes] = []
        for start in range(0, len(wire), size):
            buffer += wire[start : start + size]
            found += codec.frames(buffer)
        assert found == expected
        assert buffer == b""


def test_a_frame_of_an_absurd_length_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        list(PROTOBUF.frames(bytearray(b"HTTP/1.1 400 Bad Request")))


def test_equal_parts_of_pods_are_shared() -> None:
    template = pb.PodSpec(node_name="node-1", scheduler_name="longshore")
    template.containers.add(
        name="main", image="none", resources=pb.ResourceRequirements().SerializeToString()
    )
    template.tolerations.append(pb.Toleration(key="a", operator="Exists").SerializeToString())

    def decoded(name: str) -> Pod:
        meta = pb.ObjectMeta(name=name, labels=[pb.StringEntry(key="app", value="web").SerializeToString()])
        return decode_pod(pb.Pod(metadata=meta, spec=template).SerializeToString())

    one, other = decoded("one"), decoded("other")
    assert one.metadata.labels == {"app": "web"}
    assert one.metadata.labels is other.metadata.labels
    assert one.spec.containers is other.spec.containers
    assert one.spec.tolerations is other.spec.tolerations
    assert one.spec.node_name is other.spec.node_name


def test_annotations_of_pods_are_kept_only_if_a_plugin_reads_them() -> None:
    notes = {"example.com/note": "one", "example.org/other": "two"}
    entries = [pb.StringEntry(key=k, value=v).SerializeToString() for k, v in notes.items()]
    raw = pb.Pod(metadata=pb.ObjectMeta(name="a", annotations=entries)).SerializeToString()
    # `dict.items` does not check what is declared.
    assert [*dict.items(decode_pod(raw).metadata.annotations)] == []
    kept = kept_of(Reads(pod_annotations=("example.com/note",)))
    assert [*dict.items(decode_pod(raw, kept).metadata.annotations)] == [("example.com/note", "one")]


def test_volumes_that_scheduling_does_not_read_are_dropped() -> None:
    message = pb.Pod()
    claim = pb.VolumeSource(persistent_volume_claim={"claim_name": "data"})
    message.spec.volumes.add(name="data", volume_source=claim.SerializeToString())
    projected = b"\xd2\x01\x00"
    message.spec.volumes.add(name="kube-api-access-x7k2p", volume_source=projected)
    empty_dir = b"\x12\x00"
    message.spec.volumes.add(name="cache", volume_source=empty_dir)
    assert [v.name for v in decode_pod(message.SerializeToString()).spec.volumes] == ["data"]


def resized(*, generation: int, node: str = "n1", leaving: bool = False) -> Pod:
    meta = pb.ObjectMeta(name="a", generation=generation)
    if leaving:
        meta.deletion_timestamp = pb.Time(seconds=1).SerializeToString()
    status = pb.PodStatus(phase="Running")
    status.container_statuses.add(name="main", resources=b"")
    for kind in ("PodScheduled", "PodResizePending", "DisruptionTarget", "Ready"):
        status.conditions.append(pb.PodCondition(type=kind, reason="Infeasible").SerializeToString())
    message = pb.Pod(metadata=meta, spec=pb.PodSpec(node_name=node), status=status)
    return decode_pod(message.SerializeToString())


def kinds(conditions: tuple[PodCondition, ...]) -> list[str]:
    return [each.type for each in kept_conditions(conditions)]


def test_a_pod_of_the_first_generation_was_never_resized() -> None:
    status = resized(generation=1).status
    assert status.container_statuses == ()
    assert kinds(status.conditions) == []


@pytest.mark.parametrize("generation", [0, 2])
def test_a_pod_that_may_have_been_resized_has_its_allocated_resources(generation: int) -> None:
    status = resized(generation=generation).status
    assert [(s.name, s.resources is None) for s in status.container_statuses] == [("main", False)]
    assert kinds(status.conditions) == ["PodResizePending"]


@pytest.mark.parametrize("generation", [1, 2])
def test_a_terminating_pod_has_its_disruption_condition(generation: int) -> None:
    status = resized(generation=generation, leaving=True).status
    assert kinds(status.conditions) == ["PodResizePending", "DisruptionTarget"]


def test_a_pod_without_a_node_has_its_scheduled_condition() -> None:
    assert kinds(resized(generation=1, node="").status.conditions) == ["PodScheduled"]


def test_nodes_share_their_common_images() -> None:
    def decoded(name: str, *images: str) -> Node:
        message = pb.Node(metadata=pb.ObjectMeta(name=name))
        message.status.images.extend(pb.ContainerImage(names=[i]).SerializeToString() for i in images)
        return decode_node(message.SerializeToString())

    one, other = decoded("one", "a", "b"), decoded("other", "b", "c")
    assert one.status.images[1] is other.status.images[0]
    assert [image.names for image in other.status.images] == [("b",), ("c",)]
