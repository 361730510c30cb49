"""Decodes core objects from protobuf. Equal parts are decoded once and shared.

The pods of one template have the same labels, resources, tolerations, and affinity. The schema leaves such
parts as raw bytes. Equal bytes mean equal parts, so a part is decoded when it is first seen, and looked up
after that. This saves most of the time and memory. Names and versions, which differ, are read field by field.

Repeated fields are read as slices, as in `tuple(field[:])`, because their iterators are three times as slow.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec
from google.protobuf.message import DecodeError

from longshore.api import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    ContainerRestartRule,
    ContainerStatus,
    Node,
    NodeAddress,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodCondition,
    PodResourceClaim,
    PodResourceClaimStatus,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from longshore.api.kept import Names
from longshore.api.meta import ApiObject
from longshore.api.timestamps import format_timestamp
from longshore.framework.reads import NOTHING, Kept, kept_of
from longshore.kube._pb import kubernetes_pb2 as pb
from longshore.kube.codec import INITIAL_EVENTS_END, Bookmark, Broken, Page, Undecodable
from longshore.kube.errors import MAGIC, ApiStatus, protobuf_status
from longshore.kube.shared_parts import Shared, part_decoder, tuple_of

T = TypeVar("T", bound=ApiObject)

_TYPE = "application/vnd.kubernetes.protobuf"
# The API server accepts no object of more than a few megabytes.
_MAX_FRAME = 64 * 2**20

# The cache size for parts that differ between most pods, such as times and claims: pods that share them were
# created by one owner and come one after the other.
_NEARBY = 1_024

# A volume has one source, which begins with the tag of its field. Volumes whose source is not in the schema,
# such as the projected token that each pod has under a different name, are dropped.
_VOLUME_SOURCES = tuple(
    # An empty source is its tag and a length of zero.
    pb.VolumeSource(**{field.name: {}}).SerializeToString().removesuffix(b"\0")
    for field in pb.VolumeSource.DESCRIPTOR.fields
)


def _string_map(raws: tuple[bytes, ...]) -> dict[str, str]:
    entries = map(pb.StringEntry.FromString, raws)
    return {_strings[entry.key]: _strings[entry.value] for entry in entries}


def _quantity_map(raws: tuple[bytes, ...]) -> dict[str, str]:
    entries = map(pb.QuantityEntry.FromString, raws)
    return {_strings[entry.key]: _strings[entry.value.string] for entry in entries}


def _annotations(raws: Any) -> dict[str, str]:
    entries = map(pb.StringEntry.FromString, raws)
    return {_strings[entry.key]: entry.value for entry in entries}


def _container(key: tuple[str, str, bytes, tuple[bytes, ...], str, tuple[bytes, ...]]) -> Container:
    name, image, raw_resources, raw_ports, restart_policy, raw_rules = key
    rules = tuple(map(_decode_rule, raw_rules))
    return Container(name, image, _resources[raw_resources], _ports[raw_ports], restart_policy, rules)


def _container_status(key: tuple[str, bytes | None, tuple[bytes, ...]]) -> ContainerStatus:
    name, raw_resources, raw_allocated = key
    resources = None if raw_resources is None else _resources[raw_resources]
    return ContainerStatus(name, resources, _quantities[raw_allocated] if raw_allocated else _EMPTY)


def _volume(key: tuple[str, bytes]) -> Volume:
    name, raw_source = key
    return msgspec.structs.replace(_decode_source(raw_source), name=_strings[name])


def _timestamp(raw: bytes) -> str:
    return format_timestamp(pb.Time.FromString(raw).seconds)


_EMPTY: dict[str, str] = {}
_decode_rule = part_decoder(ContainerRestartRule, pb.ContainerRestartRule)
_decode_source = part_decoder(Volume, pb.VolumeSource)
_decode_condition = part_decoder(PodCondition, pb.PodCondition)
_decode_claim_status = part_decoder(PodResourceClaimStatus, pb.PodResourceClaimStatus)
_strings: Shared[str] = Shared(lambda text: text)
_labels = Shared(_string_map)
_quantities = Shared(_quantity_map)
_resources = Shared(part_decoder(ResourceRequirements, pb.ResourceRequirements))
_ports = Shared(tuple_of(part_decoder(ContainerPort, pb.ContainerPort)))
_container_of = Shared(_container)
_containers: Shared[tuple[Container, ...]] = Shared(lambda keys: tuple(_container_of[key] for key in keys))
_affinity = Shared(part_decoder(Affinity, pb.Affinity))
_tolerations = Shared(tuple_of(part_decoder(Toleration, pb.Toleration)))
_spread = Shared(tuple_of(part_decoder(TopologySpreadConstraint, pb.TopologySpreadConstraint)))
_gates = Shared(tuple_of(part_decoder(PodSchedulingGate, pb.PodSchedulingGate)))
_claims = Shared(tuple_of(part_decoder(PodResourceClaim, pb.PodResourceClaim)), limit=_NEARBY)
_volumes: Shared[tuple[Volume, ...]] = Shared(lambda keys: tuple(map(_volume, keys)), limit=_NEARBY)
_container_status_of = Shared(_container_status)
_owners = Shared(tuple_of(part_decoder(OwnerReference, pb.OwnerReference)), limit=_NEARBY)
_times = Shared(_timestamp, limit=_NEARBY)
_image = Shared(part_decoder(ContainerImage, pb.ContainerImage))
_features: Shared[tuple[str, ...]] = Shared(lambda names: names)
_taints = Shared(tuple_of(part_decoder(Taint, pb.Taint)))
_conditions: Shared[tuple[NodeCondition, ...]] = Shared(lambda pairs: tuple(NodeCondition(*p) for p in pairs))


def _container_keys(containers: Any) -> tuple[Container, ...]:
    return _containers[
        tuple(
            [
                (
                    c.name,
                    c.image,
                    c.resources,
                    tuple(c.ports[:]),
                    c.restart_policy,
                    tuple(c.restart_policy_rules[:]),
                )
                for c in containers[:]
            ]
        )
    ]


def _volumes_read(volumes: Any) -> tuple[Volume, ...]:
    read = [volume for volume in volumes[:] if volume.volume_source.startswith(_VOLUME_SOURCES)]
    return _volumes[tuple((volume.name, volume.volume_source) for volume in read)] if read else ()


def _metadata(meta: Any, annotations: dict[str, str]) -> ObjectMeta:
    labels = meta.labels
    created, deleted = meta.creation_timestamp, meta.deletion_timestamp
    owners = meta.owner_references
    return ObjectMeta(
        meta.name,
        _strings[meta.namespace],
        meta.uid,
        meta.resource_version,
        _labels[tuple(labels[:])] if labels else _EMPTY,
        _times[deleted] if deleted else None,
        annotations,
        _owners[tuple(owners[:])] if owners else (),
        _times[created] if created else None,
        meta.generation,
    )


def _raw_resources(message: Any) -> bytes | None:
    """Return the bytes of the resources, which may be empty, or None if the field is not set."""
    return message.resources or (b"" if message.HasField("resources") else None)


def _status_keys(statuses: Any) -> tuple[tuple[str, bytes | None, tuple[bytes, ...]], ...]:
    return tuple((s.name, _raw_resources(s), tuple(s.allocated_resources[:])) for s in statuses[:])


def _resized_key(status: Any) -> tuple[Any, ...]:
    return (
        _status_keys(status.container_statuses),
        _status_keys(status.init_container_statuses),
        _raw_resources(status),
        tuple(status.allocated_resources[:]),
    )


def _condition_tags(names: Names) -> tuple[bytes, ...]:
    """Return how conditions that are kept begin: with their type, which is field 1, and its length."""
    if names.exact is None:
        return (b"",)
    return tuple(b"\n" + bytes([len(name)]) + name.encode() for name in names.exact)


_tags = Shared(_condition_tags)


def _pod_status(key: tuple[Any, ...]) -> PodStatus:
    phase, nominated, started, types, conditions, resized, claims = key
    containers, init_containers, resources, allocated = resized
    return PodStatus(
        _strings[phase],
        _strings[nominated],
        types.of(map(_decode_condition, conditions)),
        _times[started] if started else None,
        tuple(_container_status_of[key] for key in containers),
        tuple(_container_status_of[key] for key in init_containers),
        None if resources is None else _resources[resources],
        _quantities[allocated] if allocated else _EMPTY,
        tuple(map(_decode_claim_status, claims)),
    )


_pod_statuses = Shared(_pod_status, limit=_NEARBY)
_BY_DEFAULT = kept_of(NOTHING)
_NEVER_RESIZED: tuple[Any, ...] = ((), (), None, ())


def decode_pod(raw: bytes, kept: Kept = _BY_DEFAULT) -> Pod:
    message = pb.Pod.FromString(raw)
    spec, status = message.spec, message.status
    init_containers = spec.init_containers
    node_selector = spec.node_selector
    overhead = spec.overhead
    affinity = spec.affinity
    resources = spec.resources
    spread = spec.topology_spread_constraints
    gates = spec.scheduling_gates
    claims = spec.resource_claims
    node_name = spec.node_name
    # A pod of the first generation has what its spec asks for: a resize would have made it the second.
    # Servers before 1.34 do not count generations.
    never_resized = message.metadata.generation == 1
    # Unless plugins declare conditions, a pod on a node keeps only those of a resize and of its end.
    ending = bool(message.metadata.deletion_timestamp)
    types = kept.condition_types(assigned=bool(node_name), ending=ending)
    nothing = node_name and never_resized and not ending and not kept.declares_conditions
    conditions = () if nothing else status.conditions[:]
    tags = _tags[types.kept]
    status_key = (
        status.phase,
        status.nominated_node_name,
        status.start_time,
        types,
        tuple([each for each in conditions if each.startswith(tags)]),
        _NEVER_RESIZED if never_resized else _resized_key(status),
        tuple(status.resource_claim_statuses[:]) if claims else (),
    )
    return Pod(
        _metadata(
            message.metadata,
            kept.annotations(_annotations(message.metadata.annotations))
            if kept.annotation_names
            else kept.annotation_names.no_annotations,
        ),
        PodSpec(
            _strings[node_name],
            _strings[spec.scheduler_name],
            _container_keys(spec.containers),
            _container_keys(init_containers) if init_containers else (),
            _quantities[tuple(overhead[:])] if overhead else _EMPTY,
            _resources[resources] if resources else None,
            _labels[tuple(node_selector[:])] if node_selector else _EMPTY,
            _affinity[affinity] if affinity else None,
            _tolerations[tuple(spec.tolerations[:])],
            _spread[tuple(spread[:])] if spread else (),
            _gates[tuple(gates[:])] if gates else (),
            spec.priority,
            _strings[spec.preemption_policy],
            spec.host_network,
            spec.host_users if spec.HasField("host_users") else None,
            _volumes_read(spec.volumes),
            _claims[tuple(claims[:])] if claims else (),
        ),
        _pod_statuses[status_key],
    )


def decode_node(raw: bytes) -> Node:
    message = pb.Node.FromString(raw)
    spec, status = message.spec, message.status
    return Node(
        _metadata(message.metadata, _annotations(message.metadata.annotations)),
        NodeSpec(spec.unschedulable, _taints[tuple(spec.taints[:])]),
        NodeStatus(
            _quantities[tuple(status.allocatable[:])],
            _conditions[tuple((c.type, c.status) for c in status.conditions[:])],
            tuple(_image[raw] for raw in status.images[:]),
            _features[tuple(status.declared_features[:])],
            _quantities[tuple(status.capacity[:])],
            tuple(NodeAddress(each.type, each.address) for each in status.addresses),
        ),
    )


class ProtobufCodec(Generic[T]):
    """Decodes a core resource from Kubernetes' protobuf form."""

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
        """Remove the complete frames from the buffer. Each begins with its length in four bytes."""
        found = []
        data = bytes(buffer)
        start, end = 0, len(data)
        while end - start >= 4:
            size = int.from_bytes(data[start : start + 4])
            if size > _MAX_FRAME:
                raise Undecodable(f"a watch event of {size} bytes: this is not a protobuf stream")
            stop = start + 4 + size
            if stop > end:
                break
            found.append(data[start + 4 : stop])
            start = stop
        del buffer[:start]
        return iter(found)

    def event(self, frame: bytes) -> tuple[str, T | Bookmark | ApiStatus | Broken]:
        try:
            event = pb.WatchEvent.FromString(frame)
            kind, raw = event.type, _unwrap(event.object.raw)
            if kind == "BOOKMARK":
                meta = pb.Bookmark.FromString(raw).metadata
                ended = meta.annotations.get(INITIAL_EVENTS_END) == "true"
                return kind, Bookmark(meta.resource_version, ended)
            if kind == "ERROR":
                return kind, protobuf_status(raw)
        except DecodeError as error:
            raise Undecodable(f"not a watch event: {error}") from error
        return kind, self._object(raw)

    def _object(self, raw: bytes) -> T | Broken:
        try:
            return self._decode(raw)
        except (DecodeError, UnicodeDecodeError) as error:
            return Broken("unknown object", "", str(error))


def _unwrap(body: bytes) -> bytes:
    if not body.startswith(MAGIC):
        raise DecodeError("the protobuf envelope of Kubernetes is missing")
    return pb.Unknown.FromString(body[4:]).raw
