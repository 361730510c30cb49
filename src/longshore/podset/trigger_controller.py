"""Fires triggers whose quiet time is over, and writes the status of all triggers.

The quiet time counts from the creation of the set's last pod, or of the trigger, or from when the trigger was
last set to wait, whichever is latest. All of these are stored in API objects, so that a restart neither
restarts the wait nor forgets it.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from longshore.api import Change, Pod
from longshore.api.duration import format_duration, parse_duration
from longshore.api.pod_set import (
    API_VERSION,
    PLANNING,
    QUIET_TIME_LABEL,
    SCHEDULE,
    SCHEDULER_NAME,
    Condition,
    ScheduleTrigger,
    ScheduleTriggerStatus,
    planner_label,
)
from longshore.api.timestamps import format_timestamp
from longshore.engine import Engine
from longshore.framework.controllers import Errand
from longshore.framework.effects import Outcome, PatchObject, RecordEvent, Succeeded
from longshore.framework.profile import Profile
from longshore.podset.arguments import NAME
from longshore.podset.backoff import LONGEST, Backoff
from longshore.podset.conditions import condition, merged, seconds_of
from longshore.podset.due_sets import DueSets, SetKey
from longshore.podset.sets import PodSet, SetsController, shared_sets
from longshore.podset.texts import RESERVED_LABELS, RESERVED_NAME

KIND = "ScheduleTrigger"
FIRED = "Fired"
QUIET_TIME_VALID = "QuietTimeValid"
IN_USE = "InUse"
NAME_USABLE = "PodSetNameUsable"
# What fires triggers, as metrics count it.
BY_HAND, BY_QUIET_TIME = "hand", "quiet-time"

# Seconds between two writes of a status.
_BETWEEN_WRITES = 1.0
# The wall clock may be set while a trigger waits, so it is looked at this often, in seconds.
_LOOK_AT_CLOCK = 60.0


class _Patience:
    """The backoff of one kind of write. It ends when the trigger changes."""

    def __init__(self) -> None:
        self._version = ""
        self._backoff = Backoff(longest=LONGEST)

    def until(self, version: str) -> float:
        """Return when the next write may be tried for this version of the trigger."""
        return self._backoff.until if version == self._version else float("-inf")

    def failed(self, version: str, *, now: float) -> None:
        self._version = version
        self._backoff.failed(now=now)

    def succeeded(self) -> None:
        self._backoff.succeeded()


class _Watched:
    """What is known about a trigger besides its status, which may not be written yet."""

    def __init__(self) -> None:
        self.planning_since: float | None = None
        self.last_write = float("-inf")
        self.under_way = False
        # The versions that it was fired from and that its status was written to: the watch may be behind.
        self.fired = ""
        self.written = ""
        # Whether it fired the last time because its quiet time was over.
        self.by_us = False
        self.warned: set[str] = set()
        self.firing, self.writing = _Patience(), _Patience()


class TriggerController(SetsController):
    watches = (ScheduleTrigger,)

    def __init__(self, engine: Engine) -> None:
        super().__init__(shared_sets(engine.controllers))
        self._engine = engine
        # The names of schedulers that hold sets. Pods of other schedulers do not wait for a trigger.
        self._holders = {
            SCHEDULER_NAME,
            *(name for name, each in engine.profiles.items() if _holds_sets(each)),
        }
        self._agenda = DueSets()
        # By UID.
        self._watched: dict[str, _Watched] = {}
        # When the newest pod of each set was created, if that is known.
        self._newest: dict[SetKey, float] = {}
        # How many triggers have fired, by what. One created with the state Schedule was fired by hand.
        self.fired = {BY_HAND: 0, BY_QUIET_TIME: 0}

    @property
    def deadline(self) -> float | None:
        return self._agenda.deadline

    def changed(self, change: Change[Any], *, now: float) -> None:
        for podset in self.sets.changed(change):
            match change.object:
                case Pod() as pod:
                    self._note_creation(podset, pod)
                case ScheduleTrigger() as trigger if change.new is None:
                    self._watched.pop(trigger.metadata.uid, None)
                case ScheduleTrigger() as trigger if _waits_again(change.old, trigger):
                    self._of(trigger).planning_since = self._wall(now)
            self._agenda.put(podset.key, now)

    def _note_creation(self, podset: PodSet, pod: Pod) -> None:
        uid, newest = pod.metadata.uid, self._newest.get(podset.key)
        if newest is None:
            return
        if uid in podset.pending or uid in podset.bound:
            self._newest[podset.key] = max(newest, _created(pod))
        elif _created(pod) >= newest:
            # The newest pod has left, so another one is the newest now.
            del self._newest[podset.key]

    def _last_creation(self, podset: PodSet) -> float:
        newest = self._newest.get(podset.key)
        if newest is None:
            pods = (*podset.pending.values(), *podset.bound.values())
            newest = self._newest[podset.key] = max(map(_created, pods), default=0.0)
        return newest

    def advance(self, *, now: float) -> Iterable[Errand]:
        for key in self._agenda.due(now):
            podset = self.sets.get(key)
            if podset is None or podset.is_empty:
                self._newest.pop(key, None)
            if podset is None:
                continue
            self.sets.forget_if_empty(podset)
            for trigger in list(podset.triggers.values()):
                yield from self._look_at(podset, trigger, now=now)

    def _look_at(self, podset: PodSet, trigger: ScheduleTrigger, *, now: float) -> Iterable[Errand]:
        watched = self._of(trigger)
        if watched.under_way:
            return
        version = trigger.metadata.resource_version
        fire_at = self._fire_at(podset, trigger, watched, now=now)
        if fire_at is not None and fire_at <= self._wall(now):
            if now < watched.firing.until(version):
                self._agenda.put(podset.key, watched.firing.until(version))
            elif version != watched.fired:
                watched.under_way = True
                yield self._fire(podset, trigger, watched)
            return
        if fire_at is not None:
            self._agenda.put(podset.key, min(fire_at - self._engine.epoch, now + _LOOK_AT_CLOCK))
        status = self._status(podset, trigger, watched, fire_at, now=now)
        if version == watched.written or _without_times(status) == _without_times(trigger.status):
            return
        not_before = max(watched.last_write + _BETWEEN_WRITES, watched.writing.until(version))
        if now < not_before:
            self._agenda.put(podset.key, not_before)
            return
        watched.under_way = True
        watched.last_write = now
        yield self._write(podset, trigger, watched, status)

    def _fire_at(
        self, podset: PodSet, trigger: ScheduleTrigger, watched: _Watched, *, now: float
    ) -> float | None:
        """Return the wall time at which it fires, or None if it does not fire by itself."""
        quiet = _quiet_seconds(trigger)
        if trigger is not podset.trigger or trigger.spec.state != PLANNING or quiet is None:
            return None
        since = watched.planning_since
        if since is None and _began_unseen(trigger):
            since = watched.planning_since = self._wall(now)
        if since is None:
            since = seconds_of(trigger.status.planning_since)
        created = seconds_of(trigger.metadata.creation_timestamp) or 0.0
        return quiet + max(created, since or 0.0, self._last_creation(podset))

    def _status(
        self,
        podset: PodSet,
        trigger: ScheduleTrigger,
        watched: _Watched,
        fire_at: float | None,
        *,
        now: float,
    ) -> ScheduleTriggerStatus:
        old, meta = trigger.status, trigger.metadata
        quiet = meta.labels.get(QUIET_TIME_LABEL, "")
        fired = trigger.spec.state == SCHEDULE
        wanted = [
            condition(FIRED, fired, "Released" if fired else "Held", generation=meta.generation),
            _in_use(podset, trigger),
        ]
        if quiet and _quiet_seconds(trigger) is None:
            wrong = f"{quiet!r} is not a duration such as 90s or 2m0s: the trigger does not fire by itself"
            wanted.append(
                condition(QUIET_TIME_VALID, False, "NotADuration", wrong, generation=meta.generation)
            )
        if planner_label(podset.name) in RESERVED_LABELS:
            wrong = RESERVED_NAME.format(name=podset.name, label=planner_label(podset.name))
            wanted.append(condition(NAME_USABLE, False, "ReservedName", wrong, generation=meta.generation))
        since = watched.planning_since
        return ScheduleTriggerStatus(
            held=sum(pod.spec.scheduler_name in self._holders for pod in podset.pending.values()),
            bound=len(podset.bound),
            fire_at=None if fire_at is None else format_timestamp(fire_at),
            planning_since=old.planning_since if since is None else format_timestamp(since),
            quiet_time=quiet or None,
            budget=format_duration(trigger.spec.budget_seconds),
            conditions=merged(wanted, old.conditions, wall=self._wall(now)),
            observed_generation=meta.generation,
        )

    def _fire(self, podset: PodSet, trigger: ScheduleTrigger, watched: _Watched) -> Errand:
        meta = trigger.metadata
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"state": SCHEDULE}}
        outcome = yield PatchObject(ScheduleTrigger, meta.namespace, meta.name, patch)
        watched.under_way = False
        if isinstance(outcome, Succeeded):
            watched.fired = meta.resource_version
            watched.by_us = True
            quiet = meta.labels.get(QUIET_TIME_LABEL, "")
            self._engine.tell(_event(trigger, "Normal", FIRED, f"the quiet time of {quiet} is over"))
        # If it failed, the trigger has most likely changed: the watch reports whether it still has to fire.
        self._look_again(podset, trigger, watched.firing, outcome)

    def _write(
        self, podset: PodSet, trigger: ScheduleTrigger, watched: _Watched, status: ScheduleTriggerStatus
    ) -> Errand:
        wrong = [each for each in status.conditions if each.type != FIRED and each.status == "False"]
        for each in wrong:
            if each.message not in watched.warned:
                self._engine.tell(_event(trigger, "Warning", each.reason, each.message))
        watched.warned = {each.message for each in wrong}
        meta = trigger.metadata
        patch = {"status": msgspec.to_builtins(status)}
        outcome = yield PatchObject(ScheduleTrigger, meta.namespace, meta.name, patch, subresource="status")
        watched.under_way = False
        if isinstance(outcome, Succeeded):
            watched.written = meta.resource_version
            self._count(trigger, status, watched)
        self._look_again(podset, trigger, watched.writing, outcome)

    def _count(self, trigger: ScheduleTrigger, status: ScheduleTriggerStatus, watched: _Watched) -> None:
        """Count a firing when the status first reports it, so that it is counted once across replicas."""
        if not _has_fired(status):
            watched.by_us = False
        elif not _has_fired(trigger.status):
            self.fired[BY_QUIET_TIME if watched.by_us else BY_HAND] += 1

    def _look_again(
        self, podset: PodSet, trigger: ScheduleTrigger, patience: _Patience, outcome: Outcome
    ) -> None:
        """Look at changes that came while a write was under way."""
        if isinstance(outcome, Succeeded):
            patience.succeeded()
        else:
            patience.failed(trigger.metadata.resource_version, now=self._engine.now)
        self._agenda.put(podset.key, self._engine.now)

    def _of(self, trigger: ScheduleTrigger) -> _Watched:
        return self._watched.setdefault(trigger.metadata.uid, _Watched())

    def _wall(self, now: float) -> float:
        return now + self._engine.epoch


def _holds_sets(profile: Profile) -> bool:
    return any(name == NAME for enabled in profile.enabled.values() for name, _ in enabled)


def _created(pod: Pod) -> float:
    return seconds_of(pod.metadata.creation_timestamp) or 0.0


def _quiet_seconds(trigger: ScheduleTrigger) -> float | None:
    return parse_duration(trigger.metadata.labels.get(QUIET_TIME_LABEL, ""))


def _waits_again(old: object, new: ScheduleTrigger) -> bool:
    """Whether the trigger has just been set to wait, or to wait for another time."""
    if not isinstance(old, ScheduleTrigger) or new.spec.state != PLANNING:
        return False
    label = QUIET_TIME_LABEL
    return old.spec.state != PLANNING or old.metadata.labels.get(label) != new.metadata.labels.get(label)


def _began_unseen(trigger: ScheduleTrigger) -> bool:
    """Whether that happened while no scheduler ran, according to its status."""
    status = trigger.status
    quiet = trigger.metadata.labels.get(QUIET_TIME_LABEL, "")
    return _has_fired(status) or (status.observed_generation > 0 and (status.quiet_time or "") != quiet)


def _has_fired(status: ScheduleTriggerStatus) -> bool:
    return any(each.type == FIRED and each.status == "True" for each in status.conditions)


def _in_use(podset: PodSet, trigger: ScheduleTrigger) -> Condition:
    first, generation = podset.trigger, trigger.metadata.generation
    if first is None or first is trigger:
        return condition(IN_USE, True, "FirstByName", generation=generation)
    message = f"ignored: if a pod set has several triggers, the first by name counts, {first.metadata.name}"
    return condition(IN_USE, False, "Ignored", message, generation=generation)


def _event(trigger: ScheduleTrigger, kind: Any, reason: str, note: str) -> RecordEvent:
    meta = trigger.metadata
    return RecordEvent(
        meta.namespace,
        meta.name,
        meta.uid,
        kind,
        reason,
        "Triggering",
        note,
        kind=KIND,
        api_version=API_VERSION,
    )


def _without_times(status: ScheduleTriggerStatus) -> ScheduleTriggerStatus:
    bare = tuple(msgspec.structs.replace(each, last_transition_time="") for each in status.conditions)
    return msgspec.structs.replace(status, conditions=bare)
