"""The pod sets of the cluster, with their pods, triggers and plans, as the watch tells them."""

from collections.abc import Iterator
from typing import Any

from longshore.api import Change, Pod
from longshore.api.pod_set import POD_SET_LABEL, SCHEDULE, SchedulePlan, ScheduleTrigger, plan_name
from longshore.podset.agenda import SetKey


class PodSet:
    """Pods of one namespace that carry the same label. Pods that have ended or are to end do not count."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        # By UID.
        self.pending: dict[str, Pod] = {}
        self.bound: dict[str, Pod] = {}
        self.triggers: dict[str, ScheduleTrigger] = {}
        self.plan: SchedulePlan | None = None

    @property
    def key(self) -> SetKey:
        return self.namespace, self.name

    @property
    def plan_name(self) -> str:
        return plan_name(self.namespace, self.name)

    @property
    def trigger(self) -> ScheduleTrigger | None:
        """The one that counts: of several, the first by name."""
        return self.triggers[min(self.triggers)] if self.triggers else None

    @property
    def released(self) -> bool:
        trigger = self.trigger
        return trigger is not None and trigger.spec.state == SCHEDULE

    @property
    def is_empty(self) -> bool:
        return not (self.pending or self.bound or self.triggers or self.plan)


class Sets:
    """`changed` tells which set an object belongs to, if any."""

    def __init__(self) -> None:
        self._sets: dict[SetKey, PodSet] = {}
        # A plan is found by its name, as Pallet finds it, and may lack the label. By namespace and name: the
        # sets that plans are about, and plans that are about no set that is known.
        self._planned: dict[tuple[str, str], SetKey] = {}
        self._stray: dict[tuple[str, str], SchedulePlan] = {}

    def __iter__(self) -> Iterator[PodSet]:
        return iter(self._sets.values())

    def get(self, key: SetKey) -> PodSet | None:
        return self._sets.get(key)

    def of(self, pod: Pod) -> PodSet | None:
        """The set that the pod says it belongs to, if anything is known of it."""
        name = pod.metadata.labels.get(POD_SET_LABEL)
        return self._sets.get((pod.metadata.namespace, name)) if name else None

    def changed(self, change: Change[Any]) -> list[PodSet]:
        """The sets that are different now: two, if an object has moved from one to another."""
        found = []
        for thing, put in ((change.old, False), (change.new, True)):
            key = self._set_of(thing)
            if isinstance(thing, SchedulePlan) and key is None:
                self._keep_stray(thing, put=put)
            if key is None or not isinstance(thing, Pod | ScheduleTrigger | SchedulePlan):
                continue
            podset = self._sets.get(key) or self._new(key)
            _record(podset, thing, put=put)
            if podset not in found:
                found.append(podset)
        return found

    def forget_if_empty(self, podset: PodSet) -> None:
        if podset.is_empty:
            self._sets.pop(podset.key, None)
            self._planned.pop((podset.namespace, plan_name(*podset.key)), None)

    def _new(self, key: SetKey) -> PodSet:
        podset = self._sets[key] = PodSet(*key)
        place = (podset.namespace, plan_name(*key))
        self._planned[place] = key
        podset.plan = self._stray.pop(place, None)
        return podset

    def _set_of(self, thing: object) -> SetKey | None:
        match thing:
            case Pod() | ScheduleTrigger():
                name = thing.metadata.labels.get(POD_SET_LABEL)
                return (thing.metadata.namespace, name) if name else None
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


def _record(podset: PodSet, thing: Pod | ScheduleTrigger | SchedulePlan, *, put: bool) -> None:
    match thing:
        case Pod():
            uid = thing.metadata.uid
            podset.pending.pop(uid, None)
            podset.bound.pop(uid, None)
            if put and not thing.terminal and thing.metadata.deletion_timestamp is None:
                (podset.bound if thing.spec.node_name else podset.pending)[uid] = thing
        case ScheduleTrigger():
            podset.triggers.pop(thing.metadata.name, None)
            if put:
                podset.triggers[thing.metadata.name] = thing
        case SchedulePlan():
            podset.plan = thing if put else None
