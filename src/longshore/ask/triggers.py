"""Lists triggers, releases and holds sets, and watches a set until its pods are bound.

Only `spec.state` is written. Progress is read from the pods of the set, so it does not depend on which
scheduler binds them.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from longshore.api import Pod, ScheduleTrigger, format_duration
from longshore.api.kept import kept_condition
from longshore.api.pod_set import POD_SET_LABEL, QUIET_TIME_LABEL, SCHEDULE
from longshore.ask.pod_sets import list_custom, set_name, some
from longshore.errors import UserError
from longshore.kube.caller import list_objects, patch
from longshore.kube.client import Client
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.resources import PODS, SCHEDULE_TRIGGERS

# Seconds between two requests about a watched set.
_PAUSE = 0.5
# HTTP statuses for which a retry would get the same answer.
_FINAL = (400, 401, 403, 404, 405, 422)


class Trigger(msgspec.Struct, frozen=True, rename="camel"):
    """A trigger. `held`, `bound` and `fire_at` come from its status; they are None if it has none."""

    namespace: str
    name: str
    pod_set: str
    state: str
    quiet_time: str
    held: int | None
    bound: int | None
    fire_at: str | None
    notes: tuple[str, ...]


class Triggered(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a trigger before and after the command."""

    namespace: str
    name: str
    pod_set: str
    state: str
    before: str
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.state != self.before


class TriggerProgress(msgspec.Struct, frozen=True):
    """How many pods of a set are held, and how many are bound."""

    held: int
    bound: int


async def list_triggers(client: Client, *, namespace: str = "") -> tuple[Trigger, ...]:
    """Return the triggers of a namespace, or of all namespaces, sorted by name. Raises UserError."""
    found = await list_custom(client, SCHEDULE_TRIGGERS, namespace=namespace)
    return tuple(_listed(each, found) for each in sorted(found, key=lambda each: each.key))


async def set_state(client: Client, *, namespace: str, name: str, state: str) -> Triggered:
    """Set the state of a trigger, which is found by its name or that of its set. Raises UserError."""
    triggers = await list_custom(client, SCHEDULE_TRIGGERS, namespace=namespace)
    trigger = find_trigger(triggers, namespace=namespace, name=name)
    meta = trigger.metadata
    done = Triggered(
        namespace, meta.name, set_name(trigger), state, trigger.spec.state, tuple(_notes(trigger, triggers))
    )
    if done.changed:
        changes = {"spec": {"state": state}}
        if not await patch(client, SCHEDULE_TRIGGERS, changes, namespace=namespace, name=meta.name):
            raise UserError(f"trigger {trigger.key} was deleted meanwhile")
    return done


def find_trigger(triggers: Iterable[ScheduleTrigger], *, namespace: str, name: str) -> ScheduleTrigger:
    """Return the trigger with this name, or the only trigger of the set with this name. Raises UserError."""
    by_name = {each.metadata.name: each for each in triggers}
    if name in by_name:
        return by_name[name]
    of_set = sorted(each for each, trigger in by_name.items() if set_name(trigger) == name)
    if len(of_set) == 1:
        return by_name[of_set[0]]
    if of_set:
        raise UserError(
            f"pod set {name} in namespace {namespace} has the triggers {some(of_set)}: give the name of one; "
            f"only {of_set[0]} counts"
        )
    others = some([_with_set(by_name[each]) for each in sorted(by_name)])
    hint = f"it has {others}" if others else "it has no triggers; -n chooses another namespace"
    raise UserError(f"trigger {name} does not exist in namespace {namespace}: {hint}")


async def watch(
    client: Client, trigger: Triggered, *, timeout: float, on_progress: Callable[[TriggerProgress], None]
) -> TriggerProgress:
    """Return when no pod of the set waits for a node. Raises UserError, also after the timeout."""
    if not trigger.pod_set:
        raise UserError(
            f"trigger {trigger.namespace}/{trigger.name} has no set: the label {POD_SET_LABEL} is missing"
        )
    deadline = time.monotonic() + timeout
    reported, problem = None, ""
    waiting: list[Pod] = []
    while True:
        try:
            state, pods = await _look(client, trigger)
        except UserError as error:
            if _is_final(error):
                raise
            problem = f"; {error}"
        else:
            problem = ""
            waiting = [pod for pod in pods if not pod.spec.node_name]
            progress = TriggerProgress(len(waiting), len(pods) - len(waiting))
            if progress != reported:
                on_progress(progress)
                reported = progress
            if not waiting:
                return progress
            if state != SCHEDULE:
                raise UserError(
                    f"trigger {trigger.namespace}/{trigger.name} was set back to {state}: "
                    f"pods still held: {len(waiting)}"
                )
        if time.monotonic() >= deadline:
            raise UserError(_timed_out(trigger, waiting, timeout) + problem)
        await asyncio.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))


async def _look(client: Client, trigger: Triggered) -> tuple[str, list[Pod]]:
    """Return the state of the trigger, and the pods of its set that are not ending."""
    triggers = await list_custom(client, SCHEDULE_TRIGGERS, namespace=trigger.namespace)
    now = next((each for each in triggers if each.metadata.name == trigger.name), None)
    if now is None:
        raise UserError(f"trigger {trigger.namespace}/{trigger.name} was deleted")
    selectors = {"labelSelector": f"{POD_SET_LABEL}={trigger.pod_set}"}
    pods = await list_objects(client, PODS, namespace=trigger.namespace, selectors=selectors)
    return now.spec.state, [
        pod for pod in pods.values() if not pod.terminal and pod.metadata.deletion_timestamp is None
    ]


def _is_final(error: UserError) -> bool:
    match error.__cause__:
        case ConnectionFailed():
            return False
        case ApiError() as refusal:
            return refusal.status in _FINAL
    return True


def _timed_out(trigger: Triggered, waiting: Sequence[Pod], timeout: float) -> str:
    names = sorted(pod.metadata.name for pod in waiting)
    podset = f"{trigger.namespace}/{trigger.pod_set}"
    message = f"timed out after {format_duration(timeout)}: pods of set {podset} still wait"
    conditions = [kept_condition(pod.status.conditions, "PodScheduled") for pod in waiting]
    reason = next((each.message for each in conditions if each is not None), "")
    return f"{message}: {some(names)}" + (f" ({reason})" if reason else "")


def _listed(trigger: ScheduleTrigger, triggers: Iterable[ScheduleTrigger]) -> Trigger:
    meta, status = trigger.metadata, trigger.status
    known = status.observed_generation > 0
    return Trigger(
        meta.namespace,
        meta.name,
        set_name(trigger),
        trigger.spec.state,
        meta.labels.get(QUIET_TIME_LABEL, ""),
        held=status.held if known else None,
        bound=status.bound if known else None,
        # The time has no meaning after the trigger was released by hand.
        fire_at=status.fire_at if trigger.spec.state != SCHEDULE else None,
        notes=(
            *_notes(trigger, triggers),
            *(each.message for each in status.conditions if each.type == "QuietTimeValid" and each.message),
        ),
    )


def _notes(trigger: ScheduleTrigger, triggers: Iterable[ScheduleTrigger]) -> Iterable[str]:
    name = set_name(trigger)
    if not name:
        yield f"it has no set, because the label {POD_SET_LABEL} is missing"
        return
    namespace = trigger.metadata.namespace
    first = min(
        each.metadata.name
        for each in triggers
        if each.metadata.namespace == namespace and set_name(each) == name
    )
    if first != trigger.metadata.name:
        yield f"it is ignored: of the triggers of set {name}, only the first by name counts, {first}"


def _with_set(trigger: ScheduleTrigger) -> str:
    name = set_name(trigger)
    return f"{trigger.metadata.name} (set {name})" if name else trigger.metadata.name
