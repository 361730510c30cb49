"""Keeps the plans: holds the pods of a set, has the set planned when its trigger fires, and lets its pods go.

It hears of everything that happens to sets, notes for each pod how far it has come, and looks at a set when
there is something to be done about it; while nothing happens it costs nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from longshore.api import Change, Node, Pod, Service
from longshore.api.pod_set import POD_SET_LABEL, SchedulePlan, ScheduleTrigger
from longshore.engine.decision.shapes import shape_key
from longshore.engine.queue.cluster_events import node_events
from longshore.framework.controllers import Controller, Errand
from longshore.planning.handle import PlanningHandle
from longshore.podset.agenda import Agenda, SetKey
from longshore.podset.asking import Asking
from longshore.podset.door import Door
from longshore.podset.making import BETWEEN_WRITES, Making, word_about
from longshore.podset.planners import PlannerSettings
from longshore.podset.planstatus import PlanStatus
from longshore.podset.setplan import SetPlan
from longshore.podset.sets import PodSet, Sets
from longshore.podset.texts import BEING_PLANNED, why_held

T = TypeVar("T")

# Tries to bind a pod to its planned node, before another one is planned.
_MOST_FAILURES = 3


class Counts(NamedTuple):
    held_pods: int
    held_sets: int
    released_sets: int


class PlanController(Controller):
    """A `Controller`, made by the plugin PodSetPlanner of a profile for the pods of that profile."""

    watches = (ScheduleTrigger, SchedulePlan)

    def __init__(self, handle: PlanningHandle, settings: PlannerSettings) -> None:
        self._handle = handle
        self._settings = settings
        self._door = Door(handle, freed=self._help_stuck)
        self._asking = Asking(handle, settings, imagine=self._imagine)
        self._making = Making(handle, self._asking, self._door, self._look)
        self._sets = Sets()
        self._plans: dict[SetKey, SetPlan] = {}
        self._statuses: dict[SetKey, PlanStatus] = {}
        self._agenda = Agenda()
        # A plan is being made: pods are placed as if nothing held them.
        self.imagining = False

    # What the plugin asks.

    def why_waits(self, pod: Pod) -> str:
        """Why the pod is not to be tried now; empty if it is."""
        podset = self._sets.of(pod)
        if podset is None:
            podset = PodSet(pod.metadata.namespace, pod.metadata.labels[POD_SET_LABEL])
        if not podset.released:
            return why_held(podset, pod)
        plan, uid = self._plan_of(pod), pod.metadata.uid
        if plan is None:
            return BEING_PLANNED
        if uid in plan.going and uid not in plan.barred:
            return ""
        word = word_about(plan, pod)
        return BEING_PLANNED if word is None else word.message

    def planned_node(self, pod: Pod) -> str | None:
        plan = self._plan_of(pod)
        return None if plan is None else plan.entry(pod)

    def refute(self, pod: Pod, node: str) -> None:
        """The planned node will not do."""
        plan, uid = self._plan_of(pod), pod.metadata.uid
        if plan is not None:
            plan.refused.setdefault(uid, set()).add(node)
            del plan.failures[uid]
            plan.going.discard(uid)
            plan.unplanned.add(uid)
            self._statuses[plan.podset.key].refuted(pod.metadata.name, node)
            self._door.take_back_room([pod])
            self._look(plan)

    def not_bound(self, pod: Pod, node: str) -> None:
        """The pod had its planned node, and that came to nothing."""
        plan, uid = self._plan_of(pod), pod.metadata.uid
        if plan is not None and uid in plan.going and plan.entry(pod) == node:
            plan.failures[uid] += 1

    def is_given_up(self, pod: Pod) -> bool:
        """Whether binding the pod to its planned node has failed too often."""
        plan = self._plan_of(pod)
        return plan is not None and plan.failures[pod.metadata.uid] >= _MOST_FAILURES

    def permits(self, pod: Pod, node: str) -> bool:
        """Whether the pod may be bound at once; if not, it waits for others, or until that is stored."""
        plan = self._plan_of(pod)
        if plan is None or pod.metadata.uid in plan.by_themselves:
            return True
        if plan.entry(pod) == node:
            return self._door.arrived(plan, pod)
        plan.admitted[pod.metadata.uid] = (pod.metadata.name, node)
        self._look(plan)
        return False

    # What others count, from any thread.

    def counts(self) -> Counts:
        plans = self._plans.copy().values()
        held = [each for each in plans if not each.podset.released]
        pods = sum(sum(map(plan.is_for_us, plan.podset.pending.copy().values())) for plan in held)
        return Counts(pods, len(held), len(plans) - len(held))

    @property
    def planned_again(self) -> int:
        """Plans that were made because a planned node would not do any more."""
        return self._making.again

    @property
    def planner_failures(self) -> dict[tuple[str, str], int]:
        """Of planner services, by name and by what they fail."""
        return dict(self._asking.failures)

    # What the engine tells.

    @property
    def deadline(self) -> float | None:
        return self._agenda.deadline

    def changed(self, change: Change[Any], *, now: float) -> None:
        for podset in self._sets.changed(change):
            self._set_changed(self._plans.get(podset.key) or self._begin(podset, now=now), change, now=now)
        if self._making.stuck and _may_help(change):
            self._help_stuck()
        if isinstance(change.object, Service):
            for plan in [each for each in self._plans.values() if each.by_themselves]:
                # There may be a planner by now.
                self._look_at_all(plan, now=now)

    def _set_changed(self, plan: SetPlan, change: Change[Any], *, now: float) -> None:
        match change.object:
            case Pod() as pod:
                self._pod_changed(plan, pod, now=now)
                if plan.barred and _is_another(change.old, change.new):
                    self._retry(plan, now=now)
            case ScheduleTrigger() if plan.meaning != _meaning(plan.podset):
                self._look_at_all(plan, now=now)
            case ScheduleTrigger() if plan.barred and _has_more_time(change.old, change.new):
                self._making.try_again(plan)
                self._look(plan)
            case SchedulePlan():
                plan.outdated = True
                self._look(plan)
                if plan.told(now=now):
                    self._look_at_all(plan, now=now)

    def advance(self, *, now: float) -> Iterable[Errand]:
        for key in self._agenda.due(now):
            plan = self._plans.get(key)
            if plan is None:
                continue
            for later in (plan.retry_at, plan.watch_due):
                if later is not None and later > now:
                    self._agenda.put(key, later)
            yield from self._do(plan, now=now)

    def _do(self, plan: SetPlan, *, now: float) -> Iterable[Errand]:
        making = self._making
        if plan.told(now=now):
            self._look_at_all(plan, now=now)
        if plan.untold:
            making.tell(plan)
        yield from making.open_gates(plan)
        if plan.ready:
            self._door.let_in(plan)
        if plan.under_way:
            return
        if plan.retry_at is not None and plan.retry_at <= now:
            making.try_again(plan)
        errand = self._next_errand(plan, now=now)
        if errand is not None:
            plan.under_way = True
            yield errand

    def _next_errand(self, plan: SetPlan, *, now: float) -> Errand | None:
        """One at a time for each set: planning comes first, and what is for people last."""
        podset, status = plan.podset, self._statuses[plan.podset.key]
        if plan.needs_planning or plan.outdated:
            if plan.storing.until > now:
                self._agenda.put(podset.key, plan.storing.until)
            elif plan.needs_planning:
                return self._making.make(plan, status)
            else:
                return self._making.correct(plan, status)
        due = max(plan.status_written + BETWEEN_WRITES, plan.telling.until)
        if due > now and not podset.is_empty:
            # Not before then it is asked what to tell, which takes a look at all pods.
            self._agenda.put(podset.key, due)
        elif status.is_outdated(plan):
            if due <= now:
                return self._making.write_status(plan, status)
            self._agenda.put(podset.key, due)
        elif podset.is_empty:
            del self._plans[podset.key], self._statuses[podset.key]
            self._sets.forget_if_empty(podset)
        return None

    # Which pods need what.

    def _begin(self, podset: PodSet, *, now: float) -> SetPlan:
        name = self._handle.chooser.profile.scheduler_name
        plan = SetPlan(podset, name, enters_all=self._settings.fallback == "built-in")
        self._plans[podset.key] = plan
        self._statuses[podset.key] = PlanStatus(podset, self._handle.tell)
        plan.told(now=now)
        return plan

    def _pod_changed(self, plan: SetPlan, pod: Pod, *, now: float) -> None:
        podset, uid, name = plan.podset, pod.metadata.uid, pod.metadata.name
        if uid in podset.pending:
            if not plan.released or uid not in plan.going:
                self._sort(plan, podset.pending[uid])
            if plan.awaits(name):
                plan.outdated = True
            self._look(plan)
            return
        if uid not in podset.bound:
            plan.gone.add(name)
            self._door.close(plan, [pod], BEING_PLANNED)
            if plan.barred:
                # The others may fit without it.
                self._retry(plan, now=now)
        plan.forget(uid)
        self._door.open_if_all_are_here(plan)
        bound = podset.bound.get(uid)
        if plan.entries.get(name) != (None if bound is None else bound.spec.node_name):
            plan.outdated = True
        self._look(plan, after=BETWEEN_WRITES)

    def _look_at_all(self, plan: SetPlan, *, now: float) -> None:
        """The trigger means something else, or someone has changed the plan."""
        podset = plan.podset
        plan.meaning, plan.released = _meaning(podset), podset.released
        plan.begin_anew()
        waiting = list(plan.waiting())
        self._door.close(plan, waiting, BEING_PLANNED if plan.released else why_held(podset))
        for pod in waiting:
            self._sort(plan, pod)
        plan.outdated = True
        self._look(plan)

    def _sort(self, plan: SetPlan, pod: Pod) -> None:
        """Note what is to be done about a pod without a node."""
        uid = pod.metadata.uid
        if not plan.is_ours(pod):
            return
        self._door.note_spread(plan, pod)
        if plan.released and plan.all_or_nothing and not self._door.is_placed(pod):
            plan.missing.add(uid)
        if not plan.released or uid in plan.barred:
            self._making.tell_if_news(plan, pod)
        elif uid in plan.unplanned:
            # Being planned: what is stored for it so far does not count.
            return
        elif plan.entry(pod) is not None:
            plan.left_out.pop(uid, None)
            self._making.make_ready(plan, pod)
        elif uid in plan.by_themselves:
            self._making.make_ready(plan, pod)
        elif uid not in plan.left_out and uid not in plan.admitted:
            plan.unplanned.add(uid)

    def _retry(self, plan: SetPlan, *, now: float) -> None:
        """Something has happened that may help the barred pods."""
        plan.retry_at = max(now, plan.not_before)
        self._agenda.put(plan.podset.key, plan.retry_at)

    def _help_stuck(self) -> None:
        """There may be room where there was none before."""
        for key, plan in list(self._making.stuck.items()):
            if plan.barred:
                self._retry(plan, now=self._handle.now())
            elif plan.under_way:
                plan.helped = True
            else:
                del self._making.stuck[key]

    def _imagine(self, work: Callable[[], T]) -> T:
        self.imagining = True
        try:
            return work()
        finally:
            self.imagining = False

    def _plan_of(self, pod: Pod) -> SetPlan | None:
        return self._plans.get((pod.metadata.namespace, pod.metadata.labels.get(POD_SET_LABEL, "")))

    def _look(self, plan: SetPlan, *, after: float = 0.0) -> None:
        self._agenda.put(plan.podset.key, self._handle.now() + after)


def _meaning(podset: PodSet) -> object:
    """What of its triggers matters to the pods of a set."""
    trigger = podset.trigger
    if podset.released and trigger is not None:
        return trigger.spec.all_or_nothing, trigger.spec.objective
    return why_held(podset)


def _is_another(old: object, new: object) -> bool:
    """Whether the pod is to be judged in another way than before."""
    return isinstance(old, Pod) and isinstance(new, Pod) and shape_key(old) != shape_key(new)


def _has_more_time(old: object, new: object) -> bool:
    """Whether the trigger allows for a longer search."""
    if not isinstance(old, ScheduleTrigger) or not isinstance(new, ScheduleTrigger):
        return False
    return new.spec.budget_seconds > old.spec.budget_seconds


def _may_help(change: Change[Any]) -> bool:
    """Whether there may be room, or whatever else was missing, where there was none before."""
    match change:
        case Change(None | Node() as old, None | Node() as new):
            return any(True for _ in node_events(old, new))
        case Change(None | Pod() as old, None | Pod() as new):
            had = old is not None and bool(old.spec.node_name) and not old.terminal
            has = new is not None and bool(new.spec.node_name) and not new.terminal
            return had != has or (has and _is_another(old, new))
    return not isinstance(change.object, ScheduleTrigger | SchedulePlan)
