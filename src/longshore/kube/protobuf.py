"""Core objects from protobuf, with equal parts decoded once and shared.

Pods of one template have the same labels, resources, tolerations and affinity. The schema leaves such parts
as raw bytes; equal bytes mean equal parts, so each is decoded when first seen and looked up from then on.
That saves most of the time and of the memory. Names and versions, which differ, are read field by field.
"""

import types
import typing
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec
from google.protobuf.message import DecodeError, Message

from longshore.api import (
    Affinity,
    Container,
    ContainerPort,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    Pod,
    PodCondition,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from longshore.api.meta import ApiObject
from longshore.kube._pb import kubernetes_pb2 as pb
from longshore.kube.codec import INITIAL_EVENTS_END, Bookmark, Broken, Page, Undecodable
from longshore.kube.errors import Status, StatusDetails

T = TypeVar("T", bound=ApiObject)
V = TypeVar("V")

_MAGIC = b"k8s\0"
_TYPE = "application/vnd.kubernetes.protobuf"
# Distinct parts remembered of each kind. Real clusters have hundreds of templates; past the limit the
# table starts anew, and the parts seen before are merely not shared with later ones.
_SHARED_LIMIT = 50_000
# The API server takes no object of more than a few megabytes.
_MAX_FRAME = 64 * 2**20

# A condition begins with its type: field 1, twelve bytes long.
_POD_SCHEDULED = b"\n\x0cPodScheduled"


class _Shared(dict[Any, V]):
    """Decoded parts by their bytes."""

    def __init__(self, decode: Callable[[Any], V]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, key: Any) -> V:
        if len(self) >= _SHARED_LIMIT:
            self.clear()
        part = self[key] = self._decode(key)
        return part


def _optional_type(hint: Any) -> Any:
    """`T` of `T | None`, else the hint itself."""
    if isinstance(hint, types.UnionType):
        return next(arg for arg in hint.__args__ if arg is not type(None))
    return hint


def _converter(struct: type[V], message: type[Message]) -> Callable[[bytes], V]:
    """A decoder of one kind of shared part: the message has the field names of the struct."""
    build = _builder(struct)

    def decode(raw: bytes) -> V:
        return build(message.FromString(raw))

    return decode


def _builder(struct: type[V]) -> Callable[[Any], V]:
    hints = typing.get_type_hints(struct)
    fields = [(name, _value_reader(_optional_type(hint))) for name, hint in hints.items()]

    def build(message: Any) -> V:
        present = {descriptor.name for descriptor, _ in message.ListFields()}
        return struct(**{name: read(getattr(message, name)) for name, read in fields if name in present})

    return build


def _value_reader(hint: Any) -> Callable[[Any], Any]:
    if typing.get_origin(hint) is tuple:
        read_item = _value_reader(typing.get_args(hint)[0])
        return lambda items: tuple(read_item(item) for item in items)
    if typing.get_origin(hint) is dict:
        return lambda mapping: {key: _map_value(value) for key, value in mapping.items()}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _builder(hint)
    return lambda scalar: scalar


def _map_value(value: Any) -> str:
    return value if isinstance(value, str) else str(value.string)


def _tuple_of(decode: Callable[[bytes], V]) -> Callable[[tuple[bytes, ...]], tuple[V, ...]]:
    return lambda raws: tuple(map(decode, raws))


def _string_map(raws: tuple[bytes, ...]) -> dict[str, str]:
    entries = map(pb.StringEntry.FromString, raws)
    return {_strings[entry.key]: _strings[entry.value] for entry in entries}


def _quantity_map(raws: tuple[bytes, ...]) -> dict[str, str]:
    entries = map(pb.QuantityEntry.FromString, raws)
    return {_strings[entry.key]: _strings[entry.value.string] for entry in entries}


def _container(key: tuple[str, str, bytes, tuple[bytes, ...], str]) -> Container:
    name, image, raw_resources, raw_ports, restart_policy = key
    return Container(name, image, _resources[raw_resources], _ports[raw_ports], restart_policy)


_strings: _Shared[str] = _Shared(lambda text: text)
_labels = _Shared(_string_map)
_quantities = _Shared(_quantity_map)
_resources = _Shared(_converter(ResourceRequirements, pb.ResourceRequirements))
_ports = _Shared(_tuple_of(_converter(ContainerPort, pb.ContainerPort)))
_container_of = _Shared(_container)
_containers: _Shared[tuple[Container, ...]] = _Shared(lambda keys: tuple(_container_of[key] for key in keys))
_affinity = _Shared(_converter(Affinity, pb.Affinity))
_tolerations = _Shared(_tuple_of(_converter(Toleration, pb.Toleration)))
_spread = _Shared(_tuple_of(_converter(TopologySpreadConstraint, pb.TopologySpreadConstraint)))
_gates = _Shared(_tuple_of(_converter(PodSchedulingGate, pb.PodSchedulingGate)))
_condition = _Shared(_converter(PodCondition, pb.PodCondition))
_taints = _Shared(_tuple_of(_converter(Taint, pb.Taint)))
_conditions: _Shared[tuple[NodeCondition, ...]] = _Shared(
    lambda pairs: tuple(NodeCondition(*p) for p in pairs)
)


def _container_keys(containers: Any) -> tuple[Container, ...]:
    return _containers[
        tuple((c.name, c.image, c.resources, tuple(c.ports), c.restart_policy) for c in containers)
    ]


def _metadata(meta: Any) -> ObjectMeta:
    labels = meta.labels
    return ObjectMeta(
        meta.name,
        _strings[meta.namespace],
        meta.uid,
        meta.resource_version,
        _labels[tuple(labels)] if labels else _EMPTY,
        _timestamp(meta.deletion_timestamp.seconds) if meta.HasField("deletion_timestamp") else None,
    )


_EMPTY: dict[str, str] = {}


def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pod_conditions(raws: Any) -> tuple[PodCondition, ...]:
    """Only PodScheduled: no other condition of a pod is read."""
    return tuple(_condition[raw] for raw in raws if raw.startswith(_POD_SCHEDULED))


def decode_pod(raw: bytes) -> Pod:
    message = pb.Pod.FromString(raw)
    spec, status = message.spec, message.status
    init_containers = spec.init_containers
    node_selector = spec.node_selector
    overhead = spec.overhead
    affinity = spec.affinity
    resources = spec.resources
    spread = spec.topology_spread_constraints
    gates = spec.scheduling_gates
    node_name = spec.node_name
    return Pod(
        _metadata(message.metadata),
        PodSpec(
            _strings[node_name],
            _strings[spec.scheduler_name],
            _container_keys(spec.containers),
            _container_keys(init_containers) if init_containers else (),
            _quantities[tuple(overhead)] if overhead else _EMPTY,
            _resources[resources] if resources else None,
            _labels[tuple(node_selector)] if node_selector else _EMPTY,
            _affinity[affinity] if affinity else None,
            _tolerations[tuple(spec.tolerations)],
            _spread[tuple(spread)] if spread else (),
            _gates[tuple(gates)] if gates else (),
            spec.priority,
        ),
        PodStatus(
            _strings[status.phase],
            _strings[status.nominated_node_name],
            # A bound pod's condition says no more than its node name does.
            () if node_name else _pod_conditions(status.conditions),
        ),
    )


def decode_node(raw: bytes) -> Node:
    message = pb.Node.FromString(raw)
    spec, status = message.spec, message.status
    return Node(
        _metadata(message.metadata),
        NodeSpec(spec.unschedulable, _taints[tuple(spec.taints)]),
        NodeStatus(
            _quantities[tuple(status.allocatable)],
            _conditions[tuple((c.type, c.status) for c in status.conditions)],
        ),
    )


class ProtobufCodec(Generic[T]):
    """A core resource in Kubernetes' protobuf form."""

    accept_list = _TYPE
    accept_watch = f"{_TYPE};stream=watch"

    def __init__(self, decode: Callable[[bytes], T]) -> None:
        self._decode = decode

    def page(self, body: bytes) -> Page[T]:
        try:
            listed = pb.List.FromString(_unwrap(body))
        except DecodeError as error:
            raise Undecodable(f"not a list of objects: {error}") from error
        meta = listed.metadata
        return Page.of(map(self._object, listed.items), meta.resource_version, getattr(meta, "continue"))

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        """Each frame has its length before it, in four bytes, the most significant first."""
        found = []
        data = bytes(buffer)
        start, end = 0, len(data)
        while end - start >= 4:
            size = int.from_bytes(data[start : start + 4])
            if size > _MAX_FRAME:
                raise Undecodable(f"a watch event of {size} bytes: this is no protobuf stream")
            stop = start + 4 + size
            if stop > end:
                break
            found.append(data[start + 4 : stop])
            start = stop
        del buffer[:start]
        return iter(found)

    def event(self, frame: bytes) -> tuple[str, T | Bookmark | Status | Broken]:
        try:
            event = pb.WatchEvent.FromString(frame)
            kind, raw = event.type, _unwrap(event.object.raw)
            if kind == "BOOKMARK":
                meta = pb.Bookmark.FromString(raw).metadata
                ended = meta.annotations.get(INITIAL_EVENTS_END) == "true"
                return kind, Bookmark(meta.resource_version, ended)
            if kind == "ERROR":
                return kind, _status(raw)
        except DecodeError as error:
            raise Undecodable(f"not a watch event: {error}") from error
        return kind, self._object(raw)

    def _object(self, raw: bytes) -> T | Broken:
        try:
            return self._decode(raw)
        except (DecodeError, UnicodeDecodeError) as error:
            return Broken("unknown object", "", str(error))


def _unwrap(body: bytes) -> bytes:
    if not body.startswith(_MAGIC):
        raise DecodeError("the protobuf envelope of Kubernetes is missing")
    return pb.Unknown.FromString(body[4:]).raw


def _status(raw: bytes) -> Status:
    message = pb.Status.FromString(raw)
    details = StatusDetails(message.details.retry_after_seconds)
    return Status(message.code, message.reason, message.message, details)
