"""Triggers in the hands of people: which there are, releasing and holding a set, and seeing it go.

Only `spec.state` is written. Whether a set has gone is seen by its pods, so that it does not matter which
scheduler it is that binds them.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from longshore.api import Pod, ScheduleTrigger, format_duration
from longshore.api.pod_set import POD_SET_LABEL, QUIET_TIME_LABEL, SCHEDULE
from longshore.ask.pod_sets import list_custom, set_name, some
from longshore.errors import UserError
from longshore.kube.caller import list_objects, patch
from longshore.kube.client import Client
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.resources import PODS, SCHEDULE_TRIGGERS

# Seconds between two looks at a set that is watched.
_PAUSE = 0.5
# An answer that will be the same at the next look.
_FINAL = (400, 401, 403, 404, 405, 422)


class Trigger(msgspec.Struct, frozen=True, rename="camel"):
    """`held`, `bound` and `fire_at` are what the scheduler wrote last; None if it never did."""

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
    """What became of a trigger by the command."""

    namespace: str
    name: str
    pod_set: str
    state: str
    before: str
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.state != self.before


class Progress(msgspec.Struct, frozen=True):
    held: int
    bound: int


async def list_triggers(client: Client, *, namespace: str = "") -> tuple[Trigger, ...]:
    """Of all namespaces unless one is named, by name. Raises UserError."""
    found = await list_custom(client, SCHEDULE_TRIGGERS, namespace=namespace)
    return tuple(_row(each, found) for each in sorted(found, key=lambda each: each.key))


async def set_state(client: Client, *, namespace: str, name: str, state: str) -> Triggered:
    """Release the set of the trigger, or hold it. `name` may be that of the set. Raises UserError."""
    triggers = await list_custom(client, SCHEDULE_TRIGGERS, namespace=namespace)
    trigger = meant(triggers, namespace=namespace, name=name)
    meta = trigger.metadata
    done = Triggered(
        namespace, meta.name, set_name(trigger), state, trigger.spec.state, tuple(_notes(trigger, triggers))
    )
    if done.changed:
        changes = {"spec": {"state": state}}
        if not await patch(client, SCHEDULE_TRIGGERS, changes, namespace=namespace, name=meta.name):
            raise UserError(f"trigger {trigger.key} has just been deleted")
    return done


def meant(triggers: Iterable[ScheduleTrigger], *, namespace: str, name: str) -> ScheduleTrigger:
    """The trigger of this name, or else the only one of the set of this name. Raises UserError."""
    by_name = {each.metadata.name: each for each in triggers}
    if name in by_name:
        return by_name[name]
    of_set = sorted(each for each, trigger in by_name.items() if set_name(trigger) == name)
    if len(of_set) == 1:
        return by_name[of_set[0]]
    if of_set:
        raise UserError(
            f"pod set {name} in namespace {namespace} has triggers {some(of_set)}: name one of them; "
            f"{of_set[0]} is the one that counts"
        )
    others = some([_with_set(by_name[each]) for each in sorted(by_name)])
    there = f"there are {others}" if others else "there is none; -n names another"
    raise UserError(f"there is no trigger {name} in namespace {namespace}: {there}")


async def watch(
    client: Client, trigger: Triggered, *, timeout: float, tell: Callable[[Progress], None]
) -> Progress:
    """Return when no pod of the set waits for a node. Raises UserError, also when the time is over."""
    if not trigger.pod_set:
        raise UserError(f"trigger {trigger.namespace}/{trigger.name} is about no set: nothing can be watched")
    deadline = time.monotonic() + timeout
    told, trouble = None, ""
    waiting: list[Pod] = []
    while True:
        try:
            state, pods = await _look(client, trigger)
        except UserError as error:
            if _is_final(error):
                raise
            trouble = f"; {error}"
        else:
            trouble = ""
            waiting = [pod for pod in pods if not pod.spec.node_name]
            progress = Progress(len(waiting), len(pods) - len(waiting))
            if progress != told:
                tell(progress)
                told = progress
            if not waiting:
                return progress
            if state != SCHEDULE:
                raise UserError(
                    f"trigger {trigger.namespace}/{trigger.name} was set back to {state}: "
                    f"pods still held: {len(waiting)}"
                )
        if time.monotonic() >= deadline:
            raise UserError(_too_late(trigger, waiting, timeout) + trouble)
        await asyncio.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))


async def _look(client: Client, trigger: Triggered) -> tuple[str, list[Pod]]:
    """The state of the trigger, and the pods of its set that count."""
    triggers = await list_custom(client, SCHEDULE_TRIGGERS, namespace=trigger.namespace)
    now = next((each for each in triggers if each.metadata.name == trigger.name), None)
    if now is None:
        raise UserError(f"trigger {trigger.namespace}/{trigger.name} has been deleted")
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


def _too_late(trigger: Triggered, waiting: Sequence[Pod], timeout: float) -> str:
    names = sorted(pod.metadata.name for pod in waiting)
    message = f"after {format_duration(timeout)} pods of set {trigger.namespace}/{trigger.pod_set} still wait"
    conditions = [pod.status.condition("PodScheduled") for pod in waiting]
    reason = next((each.message for each in conditions if each is not None), "")
    return f"{message}: {some(names)}" + (f" ({reason})" if reason else "")


def _row(trigger: ScheduleTrigger, triggers: Iterable[ScheduleTrigger]) -> Trigger:
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
        # Of a trigger that was released by hand meanwhile, the time means nothing.
        fire_at=status.fire_at if trigger.spec.state != SCHEDULE else None,
        notes=(
            *_notes(trigger, triggers),
            *(each.message for each in status.conditions if each.type == "QuietTimeValid" and each.message),
        ),
    )


def _notes(trigger: ScheduleTrigger, triggers: Iterable[ScheduleTrigger]) -> Iterable[str]:
    name = set_name(trigger)
    if not name:
        yield f"it is about no set, since it has no label {POD_SET_LABEL}"
        return
    namespace = trigger.metadata.namespace
    first = min(
        each.metadata.name
        for each in triggers
        if each.metadata.namespace == namespace and set_name(each) == name
    )
    if first != trigger.metadata.name:
        yield f"it is ignored: of the triggers of set {name} the first by name counts, {first}"


def _with_set(trigger: ScheduleTrigger) -> str:
    name = set_name(trigger)
    return f"{trigger.metadata.name} (set {name})" if name else trigger.metadata.name
