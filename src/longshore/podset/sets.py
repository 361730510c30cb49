"""The pod sets of the cluster with their pods, triggers and plans, as the watch reports them."""

from collections.abc import Iterable, Iterator
from typing import Any

from longshore.api import Change, Pod
from longshore.api.pod_set import POD_SET_LABEL, SCHEDULE, SchedulePlan, ScheduleTrigger, plan_name
from longshore.framework.controllers import Controller
from longshore.podset.due_sets import SetKey


class PodSet:
    """Pods of one namespace with the same label. Pods that have ended or are being deleted do not count."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        # By UID.
        self.pending: dict[str, Pod] = {}
        self.bound: dict[str, Pod] = {}
        self.triggers: dict[str, ScheduleTrigger] = {}
        self.plan: SchedulePlan | None = None
        # A controller keeps notes about it.
        self.in_use = False

    @property
    def key(self) -> SetKey:
        return self.namespace, self.name

    @property
    def plan_name(self) -> str:
        return plan_name(self.namespace, self.name)

    @property
    def trigger(self) -> ScheduleTrigger | None:
        """The trigger that counts: the first by name, if there are several."""
        return self.triggers[min(self.triggers)] if self.triggers else None

    @property
    def released(self) -> bool:
        trigger = self.trigger
        return trigger is not None and trigger.spec.state == SCHEDULE

    @property
    def is_empty(self) -> bool:
        return not (self.pending or self.bound or self.triggers or self.plan)


class Sets:
    """All pod sets of a process. The controllers that need them share one `Sets`; see `shared_sets`."""

    def __init__(self) -> None:
        self._sets: dict[SetKey, PodSet] = {}
        # A plan is found by its name, as Pallet finds it, and may lack the label. By namespace and name: the
        # sets that plans belong to, and plans that belong to no known set.
        self._planned: dict[tuple[str, str], SetKey] = {}
        self._stray: dict[tuple[str, str], SchedulePlan] = {}
        self._last: tuple[Change[Any], list[PodSet]] | None = None

    def __iter__(self) -> Iterator[PodSet]:
        return iter(self._sets.values())

    def get(self, key: SetKey) -> PodSet | None:
        return self._sets.get(key)

    def of(self, pod: Pod) -> PodSet | None:
        """Return the set that the pod belongs to by its label, if it is known."""
        name = pod.metadata.labels.get(POD_SET_LABEL)
        return self._sets.get((pod.metadata.namespace, name)) if name else None

    def changed(self, change: Change[Any]) -> list[PodSet]:
        """Return the sets that have changed: two, if an object has moved from one to another.

        Each controller that shares the sets asks; the first one has the change taken in.
        """
        if self._last is not None and self._last[0] is change:
            return self._last[1]
        found: list[PodSet] = []
        for each, put in ((change.old, False), (change.new, True)):
            key = self._set_of(each)
            if isinstance(each, SchedulePlan) and key is None:
                self._keep_stray(each, put=put)
            if key is None or not isinstance(each, Pod | ScheduleTrigger | SchedulePlan):
                continue
            podset = self._sets.get(key) or self._new(key)
            _record(podset, each, put=put)
            if podset not in found:
                found.append(podset)
        self._last = change, found
        return found

    def forget_if_empty(self, podset: PodSet) -> None:
        if podset.is_empty and not podset.in_use:
            self._sets.pop(podset.key, None)
            self._planned.pop((podset.namespace, plan_name(*podset.key)), None)

    def _new(self, key: SetKey) -> PodSet:
        podset = self._sets[key] = PodSet(*key)
        place = (podset.namespace, plan_name(*key))
        self._planned[place] = key
        podset.plan = self._stray.pop(place, None)
        return podset

    def _set_of(self, object_: object) -> SetKey | None:
        match object_:
            case Pod(metadata=meta) | ScheduleTrigger(metadata=meta):
                name = meta.labels.get(POD_SET_LABEL)
                return (meta.namespace, name) if name else None
            case SchedulePlan(metadata=meta):
                place = (meta.namespace, meta.name)
                name = meta.labels.get(POD_SET_LABEL)
                if name and plan_name(meta.namespace, name) == meta.name:
                    return meta.namespace, name
                return self._planned.get(place)
        return None

    def _keep_stray(self, plan: SchedulePlan, *, put: bool) -> None:
        place = (plan.metadata.namespace, plan.metadata.name)
        if put:
            self._stray[place] = plan
        else:
            self._stray.pop(place, None)


class SetsController(Controller):
    """A controller that works on the sets of a process."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets


def shared_sets(controllers: Iterable[object]) -> Sets:
    """Return the sets that another of these controllers already keeps, or new ones."""
    return next((each.sets for each in controllers if isinstance(each, SetsController)), None) or Sets()


def _record(podset: PodSet, changed: Pod | ScheduleTrigger | SchedulePlan, *, put: bool) -> None:
    match changed:
        case Pod():
            uid = changed.metadata.uid
            podset.pending.pop(uid, None)
            podset.bound.pop(uid, None)
            if put and not changed.terminal and changed.metadata.deletion_timestamp is None:
                (podset.bound if changed.spec.node_name else podset.pending)[uid] = changed
        case ScheduleTrigger():
            podset.triggers.pop(changed.metadata.name, None)
            if put:
                podset.triggers[changed.metadata.name] = changed
        case SchedulePlan():
            podset.plan = changed if put else None
