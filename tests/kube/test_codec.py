"""Bytes of the API server to structs: JSON and protobuf agree, rubbish is named and harms nobody else."""

import json

import msgspec
import pytest

from longshore.api import Node, Pod
from longshore.dev import ControlPlane
from longshore.kube._pb import kubernetes_pb2 as pb
from longshore.kube.client import Client
from longshore.kube.codec import Bookmark, Broken, JsonCodec, Undecodable
from longshore.kube.config import load
from longshore.kube.errors import Status
from longshore.kube.protobuf import ProtobufCodec, decode_pod
from longshore.kube.resources import NODES, PODS

# Every field of a pod that is decoded, as far as the API server takes them together.
FULL_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: full
  labels: {app: web, tier: front}
spec:
  schedulerName: nobody
  priorityClassName: system-node-critical
  nodeSelector: {disk: ssd}
  schedulingGates: [{name: example.com/wait}]
  resources: {requests: {cpu: "4", memory: 1Gi}, limits: {cpu: "8"}}
  initContainers:
    - {name: setup, image: none, resources: {requests: {cpu: 100m}}}
    - {name: sidecar, image: none, restartPolicy: Always, resources: {requests: {memory: 64Mi}}}
  containers:
    - name: main
      image: example.com/web:1
      ports:
        - {containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1, protocol: TCP}
        - {containerPort: 53, protocol: UDP}
      resources: {requests: {cpu: 500m, memory: 64Mi, example.com/gpu: "1"}, limits: {example.com/gpu: "1"}}
    - {name: plain, image: none}
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


async def test_json_and_protobuf_give_the_same_pod(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "-n", "kube-system", "-f", "-", input=FULL_POD.replace("full", namespace))
    path = PODS.path(namespace="kube-system")
    params = {"fieldSelector": f"metadata.name={namespace}"}
    async with Client(load(control_plane.kubeconfig)) as client:
        as_json = await client.request("GET", path, params=params)
        as_protobuf = await client.request("GET", path, params=params, accept=PODS.codec.accept_list)
    control_plane.kubectl("delete", "pod", "-n", "kube-system", namespace, "--now")
    [from_json] = JSON.page(as_json).items
    [from_protobuf] = PODS.codec.page(as_protobuf).items
    assert from_protobuf == from_json
    unset = {
        f.name for f in msgspec.structs.fields(type(from_json.spec)) if not getattr(from_json.spec, f.name)
    }
    assert unset == {"node_name", "overhead"}
    affinity = from_json.spec.affinity
    assert affinity is not None
    assert None not in (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)


async def test_json_and_protobuf_give_the_same_nodes(control_plane: ControlPlane) -> None:
    control_plane.add_nodes(1, prefix="tainted-")
    control_plane.kubectl("taint", "node", "tainted-0", "dedicated=web:NoSchedule")
    control_plane.kubectl("cordon", "tainted-0")
    async with Client(load(control_plane.kubeconfig)) as client:
        as_json = JsonCodec(Node).page(await client.request("GET", NODES.path()))
        as_protobuf = NODES.codec.page(
            await client.request("GET", NODES.path(), accept=NODES.codec.accept_list)
        )
    control_plane.kubectl("delete", "node", "tainted-0")
    # Heartbeats between the two requests change versions, not content.
    stripped = [
        [
            msgspec.structs.replace(n, metadata=msgspec.structs.replace(n.metadata, resource_version=""))
            for n in page.items
        ]
        for page in (as_json, as_protobuf)
    ]
    assert stripped[0] == stripped[1]
    assert any(node.spec.unschedulable and node.spec.taints for node in as_json.items)


def frame(kind: str, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def envelope(kind: str, message: bytes) -> bytes:
    wrapped = b"k8s\0" + pb.Unknown(raw=message).SerializeToString()
    return pb.WatchEvent(type=kind, object=pb.RawExtension(raw=wrapped)).SerializeToString()


JSON = JsonCodec(Pod)
PROTOBUF = ProtobufCodec(decode_pod)


def test_json_event_of_a_wrong_shape_names_the_object() -> None:
    broken = {
        "metadata": {"name": "web", "namespace": "x", "resourceVersion": "7"},
        "spec": {"priority": "high"},
    }
    kind, item = JSON.event(frame("ADDED", broken))
    assert kind == "ADDED"
    assert isinstance(item, Broken)
    assert (item.key, item.resource_version) == ("x/web", "7")
    assert "priority" in item.message


def test_json_list_keeps_the_good_beside_the_broken() -> None:
    body = {
        "metadata": {"resourceVersion": "9"},
        "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": 1}],
    }
    page = JSON.page(json.dumps(body).encode())
    assert [item.key for item in page.items] == ["a"]
    assert page.undecodable == ["b: Expected `object`, got `int` - at `$.spec`"]


def test_list_without_items_is_empty() -> None:
    assert JSON.page(b'{"metadata": {"resourceVersion": "3"}, "items": null}').items == []


@pytest.mark.parametrize(
    "rubbish", [b"", b"{", b"[]", b'{"type": "ADDED"}', b"\xff\xfe", b'{"type": 3, "object": {}}']
)
def test_json_rubbish_is_undecodable(rubbish: bytes) -> None:
    with pytest.raises(Undecodable):
        JSON.event(rubbish)


@pytest.mark.parametrize("rubbish", [b"", b"\xff\xff\xff", b"<html>", envelope("ADDED", b"")[:-3]])
def test_protobuf_rubbish_is_undecodable(rubbish: bytes) -> None:
    with pytest.raises(Undecodable):
        PROTOBUF.event(rubbish)


def test_protobuf_object_that_is_none() -> None:
    _, item = PROTOBUF.event(envelope("ADDED", b"\x0a\xff\xff\xff"))
    assert isinstance(item, Broken)


def test_bookmark_at_the_end_of_the_initial_events() -> None:
    meta = {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert JSON.event(frame("BOOKMARK", {"metadata": meta})) == ("BOOKMARK", Bookmark("12", True))
    message = pb.Bookmark(metadata=pb.BookmarkMeta(resource_version="12"))
    message.metadata.annotations["k8s.io/initial-events-end"] = "true"
    assert PROTOBUF.event(envelope("BOOKMARK", message.SerializeToString())) == (
        "BOOKMARK",
        Bookmark("12", True),
    )


def test_error_in_the_stream_carries_its_status() -> None:
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
        assert isinstance(item, Status)
        error = item.error()
        assert (error.status, error.reason, error.retry_after) == (429, "TooManyRequests", 3.0)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_frames_are_found_however_the_bytes_arrive(size: int) -> None:
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


def test_frame_of_an_absurd_length_is_undecodable() -> None:
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
