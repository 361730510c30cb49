"""Effects that are writes to the API server, each with the outcome that the engine is told."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec
import structlog

from longshore.api import PersistentVolume, PersistentVolumeClaim, Pod, PodCondition
from longshore.api.config_map import ConfigMap
from longshore.api.meta import ApiObject
from longshore.api.pod_set import SchedulePlan, ScheduleTrigger
from longshore.api.timestamps import format_timestamp
from longshore.engine import Bind, CreateObject, DeleteObject, Evict, Nominate, PatchObject, SetCondition
from longshore.engine.events import Answered, Conflict, Failed, Gone, Outcome, Succeeded
from longshore.framework.effects import GetObject
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SCHEDULE_PLANS,
    SCHEDULE_TRIGGERS,
    Resource,
)
from longshore.kube.writer import Patch, Writer

log = structlog.get_logger()

Write = Bind | SetCondition | Nominate | Evict | PatchObject | CreateObject | DeleteObject

# What plugins and controllers may write: the service account has the right to, and no more.
_WRITABLE: Mapping[type[ApiObject], Resource[Any]] = {
    PersistentVolume: PERSISTENT_VOLUMES,
    PersistentVolumeClaim: PERSISTENT_VOLUME_CLAIMS,
    Pod: PODS,
    SchedulePlan: SCHEDULE_PLANS,
    ScheduleTrigger: SCHEDULE_TRIGGERS,
    ConfigMap: CONFIG_MAPS,
}


async def write(writer: Writer, effect: Write) -> Outcome:
    """Perform the effect. What the server refuses is an outcome, too."""
    try:
        match effect:
            case Bind():
                return await writer.bind(effect.namespace, effect.name, effect.uid, effect.node)
            case SetCondition():
                await _set_status(writer, effect, effect.condition, effect.nominated_node, effect.transition)
            case Nominate():
                await _set_status(writer, effect, None, effect.node)
            case Evict():
                await _set_status(writer, effect, effect.condition)
                await writer.delete(PODS, effect.namespace, effect.name, uid=effect.uid)
            case PatchObject() | CreateObject() | DeleteObject():
                return await _change(writer, effect)
    except (ApiError, ConnectionFailed) as error:
        return _refused(error)
    return Succeeded()


async def read(writer: Writer, effect: GetObject) -> Outcome:
    """Through the connections that the writes use: objects are read as seldom as they are written."""
    resource = _WRITABLE.get(effect.kind)
    if resource is None:
        return Failed(f"objects of the kind {effect.kind.__name__} are not for a scheduler to read")
    try:
        body = await writer.read(resource, effect.namespace, effect.name)
        return Answered(msgspec.json.decode(body, type=effect.kind))
    except (ApiError, ConnectionFailed) as error:
        return _refused(error)
    except msgspec.MsgspecError as error:
        return Failed(f"{resource} {effect.namespace}/{effect.name} is not what it should be: {error}")


def _refused(error: ApiError | ConnectionFailed) -> Outcome:
    if isinstance(error, ConnectionFailed):
        return Failed(str(error))
    kind = Gone if _means_gone(error) else Failed
    return kind(str(error), error.status, error.reason)


def _means_gone(error: ApiError) -> bool:
    """The object of the name is no more, or is another one."""
    # How a patch and a deletion complain about another UID.
    return (
        error.status == 404
        or (error.status == 422 and "metadata.uid" in error.message)
        or (error.status == 409 and "the UID in the precondition" in error.message)
    )


async def _set_status(
    writer: Writer,
    effect: SetCondition | Nominate | Evict,
    condition: PodCondition | None,
    nominated_node: str | None = None,
    transition: bool = True,
) -> None:
    status: dict[str, Any] = {}
    if condition is not None:
        status["conditions"] = [_condition(condition, transition)]
    if nominated_node is not None:
        status["nominatedNodeName"] = nominated_node or None
    body = {"metadata": {"uid": effect.uid}, "status": status}
    await writer.patch(PODS, effect.namespace, effect.name, body, kind=Patch.STRATEGIC, subresource="status")


def _condition(condition: PodCondition, transition: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.observed_generation:
        body["observedGeneration"] = condition.observed_generation
    if transition:
        body["lastTransitionTime"] = format_timestamp(time.time())
    return body


async def _change(writer: Writer, effect: PatchObject | CreateObject | DeleteObject) -> Outcome:
    """What another has changed meanwhile, or has created, is a Conflict."""
    kind, namespace, name = effect.kind.__name__, effect.namespace, effect.name
    resource = _WRITABLE.get(effect.kind)
    if resource is None:
        return Failed(f"objects of the kind {kind} are not for a scheduler to write")
    try:
        match effect:
            case PatchObject(patch=patch, subresource=subresource):
                await writer.patch(resource, namespace, name, patch, subresource=subresource)
            case CreateObject(body=body):
                version = f"{resource.group}/{resource.version}" if resource.group else resource.version
                meta = {**body.get("metadata", {}), "name": name, "namespace": namespace}
                named = {**body, "apiVersion": version, "kind": kind, "metadata": meta}
                await writer.create(resource, namespace, named)
            case DeleteObject(uid=uid):
                await writer.delete(resource, namespace, name, uid=uid)
    except ApiError as error:
        if error.status == 409:
            return Conflict(error.message, error.status, error.reason)
        raise
    return Succeeded()
