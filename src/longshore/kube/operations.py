"""How each effect is performed in a real cluster, and with which outcome.

A new effect that a real cluster can perform needs its struct in `framework/effects.py` and a line in
`Operations`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_args

import msgspec
import structlog

from longshore.api import PodCondition
from longshore.api.meta import ApiObject
from longshore.api.timestamps import format_timestamp
from longshore.errors import UserError
from longshore.framework.effects import (
    Answered,
    Bind,
    CallPlanner,
    CallWebhook,
    Conflict,
    CreateObject,
    DeleteObject,
    Effect,
    Evict,
    Failed,
    GetObject,
    Gone,
    Nominate,
    Outcome,
    PatchObject,
    Run,
    SetCondition,
    Succeeded,
)
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.kinds import KINDS
from longshore.kube.planner_calls import PlannerCalls, PlannerFailed
from longshore.kube.resources import PODS, Resource
from longshore.kube.webhook_calls import WebhookCalls
from longshore.kube.writer import Patch, Writer

log = structlog.get_logger()

Write = Bind | SetCondition | Nominate | Evict | PatchObject | CreateObject | DeleteObject

_WRITES: tuple[type[Write], ...] = get_args(Write)

# How long an `async def` plugin may take: as long as kube-scheduler waits for volumes by default.
_RUN_SECONDS = 600.0
# Operations allowed without the lease, because they change nothing in the cluster.
_WITHOUT_LEASE = (GetObject, Run)
_NOT_LEADING = Failed("this scheduler no longer holds the lease")


class _NoRights(Exception):
    """The service account has no rights on the kind."""


class Operations:
    """Performs effects through a writer. `on_write` is called with every write that has ended.

    `may_write` is asked before each effect that changes something or asks another process to.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        webhooks: WebhookCalls | None = None,
        planners: PlannerCalls | None = None,
        on_write: Callable[[Write, Outcome], None] | None = None,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self.bound = 0
        self.may_write = may_write
        self._writer = writer
        self._planners = planners or PlannerCalls()
        self._on_write = on_write or log_write
        self._performers: Mapping[type[Effect], Callable[[Any], Awaitable[Outcome]]] = {
            Bind: self._bind,
            Evict: self._evict,
            PatchObject: self._patch,
            CreateObject: self._create,
            DeleteObject: self._delete,
            GetObject: self._get,
            Run: self._run,
            CallWebhook: (webhooks or WebhookCalls(())).call,
            CallPlanner: self._call_planner,
            SetCondition: self._set_condition,
            Nominate: self._nominate,
        }

    async def perform(self, effect: Effect) -> Outcome:
        """Return an outcome in any case: one pod must not stop the others."""
        if not self.may_write() and not isinstance(effect, _WITHOUT_LEASE):
            return _NOT_LEADING
        try:
            outcome = await self._performers[type(effect)](effect)
        except ApiError as error:
            outcome = _refusal(error)
        except (ConnectionFailed, _NoRights) as error:
            outcome = Failed(str(error))
        except Exception as error:
            log.exception("an effect failed because of a bug", effect=type(effect).__name__)
            return Failed(f"internal error: {error!r}")
        if isinstance(effect, _WRITES):
            self._on_write(effect, outcome)
        return outcome

    async def _bind(self, effect: Bind) -> Outcome:
        outcome = await self._writer.bind(effect.namespace, effect.name, effect.uid, effect.node)
        if isinstance(outcome, Succeeded):
            self.bound += 1
        return outcome

    async def _evict(self, effect: Evict) -> Outcome:
        try:
            await self._patch_status(effect, {"conditions": [_condition(effect.condition, transition=True)]})
            await self._writer.delete(PODS, effect.namespace, effect.name, uid=effect.uid)
        except ApiError as error:
            # How a deletion complains about another UID.
            if error.status == 409 and "the UID in the precondition" in error.message:
                return Gone(error.message, error.status, error.reason)
            raise
        return Succeeded()

    async def _set_condition(self, effect: SetCondition) -> Outcome:
        status: dict[str, Any] = {"conditions": [_condition(effect.condition, transition=effect.transition)]}
        if effect.nominated_node is not None:
            status["nominatedNodeName"] = effect.nominated_node or None
        return await self._patch_status(effect, status)

    async def _nominate(self, effect: Nominate) -> Outcome:
        return await self._patch_status(effect, {"nominatedNodeName": effect.node or None})

    async def _patch_status(self, effect: SetCondition | Nominate | Evict, status: dict[str, Any]) -> Outcome:
        body = {"metadata": {"uid": effect.uid}, "status": status}
        await self._writer.patch(
            PODS, effect.namespace, effect.name, body, kind=Patch.STRATEGIC, subresource="status"
        )
        return Succeeded()

    async def _patch(self, effect: PatchObject) -> Outcome:
        resource = _writable(effect.kind)
        await self._writer.patch(
            resource, effect.namespace, effect.name, effect.patch, subresource=effect.subresource
        )
        return Succeeded()

    async def _create(self, effect: CreateObject) -> Outcome:
        resource = _writable(effect.kind)
        version = f"{resource.group}/{resource.version}" if resource.group else resource.version
        meta = {**effect.body.get("metadata", {}), "name": effect.name, "namespace": effect.namespace}
        body = {**effect.body, "apiVersion": version, "kind": effect.kind.__name__, "metadata": meta}
        await self._writer.create(resource, effect.namespace, body)
        return Succeeded()

    async def _delete(self, effect: DeleteObject) -> Outcome:
        await self._writer.delete(_writable(effect.kind), effect.namespace, effect.name, uid=effect.uid)
        return Succeeded()

    async def _get(self, effect: GetObject) -> Outcome:
        """Use the connections of the writes: objects are read as seldom as they are written."""
        resource = _writable(effect.kind)
        body = await self._writer.read(resource, effect.namespace, effect.name)
        try:
            return Answered(msgspec.json.decode(body, type=effect.kind))
        except msgspec.MsgspecError as error:
            return Failed(f"cannot decode {resource} {effect.namespace}/{effect.name}: {error}")

    async def _run(self, effect: Run) -> Outcome:
        try:
            async with asyncio.timeout(_RUN_SECONDS):
                return Answered(await effect.awaitable)
        except TimeoutError as error:
            return Failed(str(error) or f"not done within {_RUN_SECONDS:g} s")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Failed("the plugin cancelled its own work")
        except (Exception, SystemExit) as error:  # whatever a plugin does, only this attempt fails
            return Failed(repr(error))

    async def _call_planner(self, effect: CallPlanner) -> Outcome:
        try:
            return Answered(await self._planners.call(effect.address, effect.request, timeout=effect.seconds))
        except (PlannerFailed, UserError) as error:
            log.warning("a planner failed", reason=str(error))
            return Failed(str(error))


def log_write(effect: Write, outcome: Outcome) -> None:
    name = f"{effect.namespace}/{effect.name}" if effect.namespace else effect.name
    if isinstance(effect, Bind):
        if isinstance(outcome, Succeeded):
            log.debug("pod bound", pod=name, node=effect.node)
            return
        kind, reason = type(outcome).__name__.lower(), outcome.message
        log.warning("pod not bound", pod=name, node=effect.node, outcome=kind, reason=reason)
    elif isinstance(outcome, Failed):
        log.warning("write failed", effect=type(effect).__name__, object=name, reason=outcome.message)


def _writable(kind: type[ApiObject]) -> Resource[Any]:
    found = KINDS.get(kind)
    if found is None or not found.writable:
        raise _NoRights(f"a scheduler may not read or write objects of the kind {kind.__name__}")
    return found.resource


def _refusal(error: ApiError) -> Outcome:
    # The latter is how a patch complains about another UID.
    if error.status == 404 or (error.status == 422 and "metadata.uid" in error.message):
        return Gone(error.message, error.status, error.reason)
    if error.status == 409:
        return Conflict(error.message, error.status, error.reason)
    return Failed(str(error), error.status, error.reason)


def _condition(condition: PodCondition, *, transition: bool) -> dict[str, Any]:
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
