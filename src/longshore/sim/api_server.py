"""The objects of a simulated cluster, and the rules by which an API server changes them.

Every write returns the `Change` that a watch would report, and every effect the outcome that a real cluster
would answer with, down to status, reason and message. Time is not its business: it is asked for the time that
new objects are stamped with.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeVar

import msgspec

from longshore.api import Change, Node, Pod, PodCondition
from longshore.api.kept import kept_conditions
from longshore.api.meta import ApiObject, kind_of
from longshore.api.pod_set import GROUP, SchedulePlan, ScheduleTrigger
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
# All that matters about it is that the deletion has begun.
_DELETED_AT = "2026-01-01T00:00:00Z"


class SimulatedApiServer:
    def __init__(self, stamp: Callable[[], str | None] = lambda: None) -> None:
        self._stamp = stamp
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        # Objects of the other kinds, by kind and key.
        self.others: dict[type[ApiObject], dict[str, ApiObject]] = {}
        # All recorded events, in order.
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

    def put(self, item: ApiObject) -> Change[Any]:
        """Create the object, or replace the one of this name."""
        if isinstance(item, Node):
            return self.put_node(item)
        if isinstance(item, Pod):
            return self.put_pod(item)
        objects = self.others.setdefault(kind_of(item), {})
        return self._put(objects, _next_generation(objects.get(item.key), item))

    def delete(self, item: ApiObject) -> Change[Any] | None:
        """Delete the object of this kind and name, at once."""
        if isinstance(item, Node):
            return self.delete_node(item.metadata.name)
        if isinstance(item, Pod):
            return self.delete_pod(item.key)
        old = self.others.get(kind_of(item), {}).pop(item.key, None)
        return None if old is None else Change(old, None)

    def delete_node(self, name: str) -> Change[Node] | None:
        """Delete the node. Pods bound to it stay, as in a real cluster until a controller deletes them."""
        old = self.nodes.pop(name, None)
        return None if old is None else Change(old, None)

    def delete_pod(self, key: str) -> Change[Pod] | None:
        """Delete the pod at once, without a grace period."""
        old = self.pods.pop(key, None)
        return None if old is None else Change(old, None)

    def set_phase(self, key: str, uid: str, phase: str) -> Changes:
        """Report the phase as a kubelet does; nothing changes if the pod is gone or has ended already."""
        pod = self.pods.get(key)
        if pod is None or pod.metadata.uid != uid or pod.terminal:
            return []
        return [self.put_pod(_replace(pod, status=_replace(pod.status, phase=phase)))]

    def perform(self, effect: Effect) -> tuple[Outcome, Changes]:
        """Perform the effect: return its outcome, and what a watch reports because of it."""
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
                return (_not_found(effect.kind, effect.name) if found is None else Answered(found)), []
            case RecordEvent():
                self.events.append(effect)
                return Succeeded(), []
        return Failed(f"a simulated cluster cannot do {type(effect).__name__}"), []

    def _bind(self, bind: Bind) -> tuple[Outcome, Changes]:
        name = bind.name
        pod = self.pods.get(f"{bind.namespace}/{name}")
        if pod is None:
            return _not_found(Pod, name), []
        if bind.uid != pod.metadata.uid:
            key = f"/registry/pods/{bind.namespace}/{name}"
            uids = f"UID in precondition: {bind.uid}, UID in object meta: {pod.metadata.uid}"
            return _conflict(
                f'pods "{name}": StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, '
                f"AdditionalErrorMsg: Precondition failed: {uids}"
            ), []
        problem = ""
        if pod.metadata.deletion_timestamp is not None:
            problem = f"pod {name} is being deleted, cannot be assigned to a host"
        elif pod.spec.node_name:
            problem = f'pod {name} is already assigned to node "{pod.spec.node_name}"'
        elif pod.spec.scheduling_gates:
            problem = f"pod {name} has non-empty .spec.schedulingGates"
        if problem:
            return _conflict(f'pods/binding "{name}": {problem}'), []
        scheduled = PodCondition(type="PodScheduled", status="True")
        bound = _replace(_with_condition(pod, scheduled), spec=_replace(pod.spec, node_name=bind.node))
        return Succeeded(), [self.put_pod(bound)]

    def _change_status(
        self, effect: SetCondition | Nominate, condition: PodCondition | None, nominated: str | None
    ) -> tuple[Outcome, Changes]:
        pod = self.pods.get(f"{effect.namespace}/{effect.name}")
        if pod is None or pod.metadata.uid != effect.uid:
            return _no_such_pod(pod, effect), []
        if condition is not None:
            pod = _with_condition(pod, condition)
        if nominated is not None:
            pod = _replace(pod, status=_replace(pod.status, nominated_node_name=nominated))
        return Succeeded(), [self.put_pod(pod)]

    def _evict(self, effect: Evict) -> tuple[Outcome, Changes]:
        """Mark the pod as being deleted; the simulation deletes it when it has stopped, as a kubelet does."""
        pod = self.pods.get(f"{effect.namespace}/{effect.name}")
        if pod is None or pod.metadata.uid != effect.uid:
            return _no_such_pod(pod, effect), []
        pod = _with_condition(pod, effect.condition)
        leaving = _replace(pod, metadata=_replace(pod.metadata, deletion_timestamp=_DELETED_AT))
        return Succeeded(), [self.put_pod(leaving)]

    def _patch(self, effect: PatchObject) -> tuple[Outcome, Changes]:
        old = self._objects(effect.kind).get(_key(effect))
        if old is None:
            return _not_found(effect.kind, effect.name), []
        wanted = effect.patch.get("metadata", {})
        if (uid := wanted.get("uid")) not in (None, old.metadata.uid):
            return _immutable_uid(effect.kind, effect.name, uid), []
        if wanted.get("resourceVersion") not in (None, old.metadata.resource_version):
            return _conflict(
                f'{_plural(effect.kind)} "{effect.name}": the object has been modified; '
                "please apply your changes to the latest version and try again"
            ), []
        try:
            new = msgspec.convert(_merged(msgspec.to_builtins(old), effect.patch), effect.kind)
        except msgspec.ValidationError as error:
            return _invalid(effect.kind, effect.name, error), []
        return Succeeded(), [self.put(new)]

    def _create(self, effect: CreateObject) -> tuple[Outcome, Changes]:
        if _key(effect) in self._objects(effect.kind):
            message = f'{_plural(effect.kind)} "{effect.name}" already exists'
            return Conflict(message, 409, "AlreadyExists"), []
        named = {"metadata": {"namespace": effect.namespace, "name": effect.name}}
        try:
            new = msgspec.convert(_merged(effect.body, named), effect.kind)
        except msgspec.ValidationError as error:
            return _invalid(effect.kind, effect.name, error), []
        return Succeeded(), [self.put(new)]

    def _remove(self, effect: DeleteObject) -> tuple[Outcome, Changes]:
        old = self._objects(effect.kind).get(_key(effect))
        if old is None:
            return Succeeded(), []
        if effect.uid not in ("", old.metadata.uid):
            return _conflict(
                f'{effect.kind.__name__} "{effect.name}": the UID in the precondition ({effect.uid}) '
                f"does not match the UID in record ({old.metadata.uid}). "
                "The object might have been deleted and then recreated"
            ), []
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


def _next_generation(old: ApiObject | None, new: ApiObject) -> ApiObject:
    """The new object with the generation of an API server, which counts the changes of the spec."""
    generation = 1
    if old is not None:
        changed = getattr(old, "spec", None) != getattr(new, "spec", None)
        generation = old.metadata.generation + changed
    return _replace(new, metadata=_replace(new.metadata, generation=generation))


def _key(effect: PatchObject | CreateObject | DeleteObject | GetObject) -> str:
    return f"{effect.namespace}/{effect.name}" if effect.namespace else effect.name


def _plural(kind: type[ApiObject]) -> str:
    """The resource of the kind, as messages name it."""
    plural = f"{kind.__name__.lower()}s"
    return f"{plural}.{GROUP}" if kind in (SchedulePlan, ScheduleTrigger) else plural


def _not_found(kind: type[ApiObject], name: str) -> Gone:
    return Gone(f'{_plural(kind)} "{name}" not found', 404, "NotFound")


def _no_such_pod(found: Pod | None, effect: SetCondition | Nominate | Evict) -> Gone:
    if found is None:
        return _not_found(Pod, effect.name)
    return _immutable_uid(Pod, effect.name, effect.uid)


def _immutable_uid(kind: type[ApiObject], name: str, uid: str) -> Gone:
    problem = f'metadata.uid: Invalid value: "{uid}": field is immutable'
    return Gone(f'{kind.__name__} "{name}" is invalid: {problem}', 422, "Invalid")


def _invalid(kind: type[ApiObject], name: str, error: msgspec.ValidationError) -> Failed:
    return Failed(f'{kind.__name__} "{name}" is invalid: {error} (422 Invalid)', 422, "Invalid")


def _conflict(problem: str) -> Conflict:
    return Conflict(f"Operation cannot be fulfilled on {problem}", 409, "Conflict")


def _with_condition(pod: Pod, condition: PodCondition) -> Pod:
    # A recorded pod has only those conditions that the scheduler kept.
    kept = kept_conditions(pod.status.conditions)
    others = tuple(each for each in kept if each.type != condition.type)
    return _replace(pod, status=_replace(pod.status, conditions=(*others, condition)))


def _merged(old: Any, patch: Any) -> Any:
    """Apply a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
