"""The objects of a simulated cluster, and the rules by which an API server changes them.

Every write gives the `Change` that a watch would tell, and every effect of the engine the outcome that an API
server would answer. When things happen is up to the simulation: it is asked for the time that new objects
are stamped with.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeVar

import msgspec

from longshore.api import Change, Node, Pod, PodCondition
from longshore.api.meta import ApiObject, kind_of
from longshore.engine import (
    Answered,
    Bind,
    Conflict,
    CreateObject,
    DeleteObject,
    Effect,
    Evict,
    Failed,
    Gone,
    Nominate,
    Outcome,
    PatchObject,
    RecordEvent,
    SetCondition,
    Succeeded,
)
from longshore.framework.effects import GetObject

_replace = msgspec.structs.replace
_T = TypeVar("_T", bound=ApiObject)

Changes = list[Change[Any]]
# When deletion begins there; what counts is only that it has.
_BEFORE_LONG = "2026-01-01T00:00:00Z"


class SimulatedCluster:
    def __init__(self, stamp: Callable[[], str | None] = lambda: None) -> None:
        self._stamp = stamp
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        # Objects of other kinds, by kind and key.
        self.others: dict[type[ApiObject], dict[str, ApiObject]] = {}
        # All that people would be told, in order.
        self.events: list[RecordEvent] = []
        self._versions = count(1)

    def put_node(self, node: Node) -> Change[Node]:
        """Create the node, or replace the one of this name."""
        return self._put(self.nodes, node)

    def put_pod(self, pod: Pod) -> Change[Pod]:
        """Create the pod, or replace the one of this name. A pod that is bound stays bound."""
        old = self.pods.get(pod.key)
        if old is not None and old.metadata.uid == pod.metadata.uid and old.spec.node_name:
            pod = _replace(pod, spec=_replace(pod.spec, node_name=old.spec.node_name))
        return self._put(self.pods, pod)

    def put(self, thing: ApiObject) -> Change[Any]:
        """Create the object, or replace the one of this name."""
        if isinstance(thing, Node):
            return self.put_node(thing)
        if isinstance(thing, Pod):
            return self.put_pod(thing)
        objects = self.others.setdefault(kind_of(thing), {})
        return self._put(objects, _of_next_generation(objects.get(thing.key), thing))

    def delete(self, thing: ApiObject) -> Change[Any] | None:
        """Delete the object of this kind and name, at once."""
        if isinstance(thing, Node):
            return self.delete_node(thing.metadata.name)
        if isinstance(thing, Pod):
            return self.delete_pod(thing.key)
        old = self.others.get(kind_of(thing), {}).pop(thing.key, None)
        return None if old is None else Change(old, None)

    def delete_node(self, name: str) -> Change[Node] | None:
        """Pods bound to it stay, as they do in a real cluster until a controller takes them away."""
        old = self.nodes.pop(name, None)
        return None if old is None else Change(old, None)

    def delete_pod(self, key: str) -> Change[Pod] | None:
        """Delete the pod at once, without a grace period."""
        old = self.pods.pop(key, None)
        return None if old is None else Change(old, None)

    def set_phase(self, key: str, uid: str, phase: str) -> Changes:
        """What a kubelet reports; nothing when the pod has gone or has ended already."""
        pod = self.pods.get(key)
        if pod is None or pod.metadata.uid != uid or pod.terminal:
            return []
        return [self.put_pod(_replace(pod, status=_replace(pod.status, phase=phase)))]

    def perform(self, effect: Effect) -> tuple[Outcome, Changes]:
        """Do what the engine asked for: the answer, and what a watch tells because of it."""
        match effect:
            case Bind():
                return self._bind(effect)
            case SetCondition():
                return self._change_status(effect, effect.condition, effect.nominated_node)
            case Nominate():
                return self._change_status(effect, None, effect.node)
            case Evict():
                return self._evict(effect)
            case PatchObject():
                return self._patch(effect)
            case CreateObject():
                return self._create(effect)
            case DeleteObject():
                return self._remove(effect)
            case GetObject():
                found = self._objects(effect.kind).get(_key(effect))
                return (Gone(f'"{_key(effect)}" not found', 404) if found is None else Answered(found)), []
            case RecordEvent():
                self.events.append(effect)
                return Succeeded(), []
        return Failed(f"a simulated cluster cannot do {type(effect).__name__}"), []

    def _bind(self, bind: Bind) -> tuple[Outcome, Changes]:
        pod = self.pods.get(f"{bind.namespace}/{bind.name}")
        if pod is None:
            return Gone(f'pods "{bind.name}" not found'), []
        if bind.uid != pod.metadata.uid:
            return Conflict(f'pod "{bind.name}" has another UID'), []
        if pod.metadata.deletion_timestamp is not None:
            return Conflict(f'pod "{bind.name}" is being deleted'), []
        if pod.spec.node_name:
            return Conflict(f'pod "{bind.name}" is already assigned to node "{pod.spec.node_name}"'), []
        if pod.spec.scheduling_gates:
            return Conflict(f'pod "{bind.name}" has scheduling gates'), []
        scheduled = PodCondition(type="PodScheduled", status="True")
        bound = _replace(_with_condition(pod, scheduled), spec=_replace(pod.spec, node_name=bind.node))
        return Succeeded(), [self.put_pod(bound)]

    def _find(self, effect: SetCondition | Nominate | Evict) -> Pod | None:
        pod = self.pods.get(f"{effect.namespace}/{effect.name}")
        return pod if pod is not None and pod.metadata.uid == effect.uid else None

    def _change_status(
        self, effect: SetCondition | Nominate, condition: PodCondition | None, nominated: str | None
    ) -> tuple[Outcome, Changes]:
        pod = self._find(effect)
        if pod is None:
            return Gone(f'pods "{effect.name}" not found'), []
        if condition is not None:
            pod = _with_condition(pod, condition)
        if nominated is not None:
            pod = _replace(pod, status=_replace(pod.status, nominated_node_name=nominated))
        return Succeeded(), [self.put_pod(pod)]

    def _evict(self, effect: Evict) -> tuple[Outcome, Changes]:
        """The pod is told to stop; when it has, `delete_pod` is for the kubelet, or the simulation, to do."""
        pod = self._find(effect)
        if pod is None:
            return Gone(f'pods "{effect.name}" not found'), []
        pod = _with_condition(pod, effect.condition)
        leaving = _replace(pod, metadata=_replace(pod.metadata, deletion_timestamp=_BEFORE_LONG))
        return Succeeded(), [self.put_pod(leaving)]

    def _patch(self, effect: PatchObject) -> tuple[Outcome, Changes]:
        key = _key(effect)
        old = self._objects(effect.kind).get(key)
        if old is None:
            return Gone(f'"{key}" not found'), []
        wanted = effect.patch.get("metadata", {})
        if wanted.get("uid") not in (None, old.metadata.uid):
            return Gone(f'"{key}" has another UID'), []
        if wanted.get("resourceVersion") not in (None, old.metadata.resource_version):
            return Conflict(f'"{key}" has changed since'), []
        merged = _merged(msgspec.to_builtins(old), effect.patch)
        return Succeeded(), [self.put(msgspec.convert(merged, effect.kind))]

    def _create(self, effect: CreateObject) -> tuple[Outcome, Changes]:
        if _key(effect) in self._objects(effect.kind):
            return Conflict(f'"{_key(effect)}" already exists', 409, "AlreadyExists"), []
        named = {"metadata": {"namespace": effect.namespace, "name": effect.name}}
        return Succeeded(), [self.put(msgspec.convert(_merged(effect.body, named), effect.kind))]

    def _remove(self, effect: DeleteObject) -> tuple[Outcome, Changes]:
        old = self._objects(effect.kind).get(_key(effect))
        if old is None:
            return Succeeded(), []
        if effect.uid not in ("", old.metadata.uid):
            return Conflict(f'"{_key(effect)}" has another UID'), []
        change = self.delete(old)
        return Succeeded(), [] if change is None else [change]

    def _objects(self, kind: type[ApiObject]) -> Mapping[str, ApiObject]:
        return self.pods if kind is Pod else self.nodes if kind is Node else self.others.get(kind, {})

    def _put(self, objects: dict[str, _T], new: _T) -> Change[_T]:
        old = objects.get(new.key)
        version = next(self._versions)
        uid = new.metadata.uid or (f"uid-{version}" if old is None else old.metadata.uid)
        created = new.metadata.creation_timestamp or (
            self._stamp() if old is None else old.metadata.creation_timestamp
        )
        new = _replace(
            new,
            metadata=_replace(
                new.metadata, uid=uid, resource_version=str(version), creation_timestamp=created
            ),
        )
        objects[new.key] = new
        return Change(old, new)


def _of_next_generation(old: ApiObject | None, new: ApiObject) -> ApiObject:
    """Counted as an API server does: with every change of the spec."""
    generation = 1
    if old is not None:
        changed = getattr(old, "spec", None) != getattr(new, "spec", None)
        generation = old.metadata.generation + changed
    return _replace(new, metadata=_replace(new.metadata, generation=generation))


def _key(effect: PatchObject | CreateObject | DeleteObject | GetObject) -> str:
    return f"{effect.namespace}/{effect.name}" if effect.namespace else effect.name


def _with_condition(pod: Pod, condition: PodCondition) -> Pod:
    others = tuple(c for c in pod.status.conditions if c.type != condition.type)
    return _replace(pod, status=_replace(pod.status, conditions=(*others, condition)))


def _merged(old: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
