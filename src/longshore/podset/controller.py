"""Holds the pods of a set, plans the set when its trigger fires, and releases its pods by the plan.

The controller turns every change to a set into events for its members, and looks at a set when
there is something to do about it. While nothing happens it costs nothing.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from longshore.api import Change, Node, Pod, Service
from longshore.api.pod_set import POD_SET_LABEL, SchedulePlan, ScheduleTrigger
from longshore.engine.cycle.reporting import EVENT_FAILED_SCHEDULING
from longshore.engine.decision.shapes import shape_key
from longshore.engine.queue.cluster_events import node_events
from longshore.framework import Status, Wait
from longshore.framework.controllers import Errand
from longshore.framework.effects import RecordEvent, SetCondition
from longshore.framework.points import MAX_PERMIT_WAIT
from longshore.planning.handle import PlanningHandle
from longshore.podset.admission import Admission
from longshore.podset.due_sets import DueSets, SetKey
from longshore.podset.plan_errands import BETWEEN_WRITES, PlanErrands
from longshore.podset.plan_source import PlanSource
from longshore.podset.planner_services import PlannerSettings
from longshore.podset.set_state import SetState, StuckSets
from longshore.podset.sets import PodSet, SetsController, shared_sets
from longshore.podset.stages import Stage
from longshore.podset.texts import (
    BEING_PLANNED,
    REASON_WAITING,
    condition_of,
    is_told,
    waiting_condition,
    why_held,
    why_waits,
)
from longshore.podset.transitions import (
    Left,
    NotBound,
    Recalled,
    Refuted,
    Reserved,
    Reviewed,
    Seen,
    TriedAgain,
)

# Failures to bind a pod to its planned node before another node is planned.
_MOST_FAILURES = 3


class Counts(NamedTuple):
    held_pods: int
    held_sets: int
    released_sets: int


class PodSetController(SetsController):
    """A `Controller`, made by the plugin PodSetPlanner of a profile for the pods of that profile."""

    watches = (ScheduleTrigger, SchedulePlan)

    def __init__(self, handle: PlanningHandle, settings: PlannerSettings) -> None:
        super().__init__(shared_sets(handle.controllers))
        self._handle = handle
        self._settings = settings
        self._stuck = StuckSets()
        self._admission = Admission(handle, self._stuck)
        self._source = PlanSource(handle, settings)
        self._errands = PlanErrands(handle, self._source, self._admission, self._stuck)
        self._states: dict[SetKey, SetState] = {}
        self._agenda = DueSets()

    def state_of(self, pod: Pod) -> SetState | None:
        """Return what is known about the set of the pod."""
        return self._states.get((pod.metadata.namespace, pod.metadata.labels.get(POD_SET_LABEL, "")))

    # What the plugin asks.

    def why_waits(self, pod: Pod) -> str:
        """Return why the pod must not be tried now, or an empty string if it may be."""
        state = self.state_of(pod)
        member = None if state is None else state.member(pod)
        if state is not None and member is not None:
            return why_waits(state.podset, member, not_stored=state.not_stored)
        podset = self.sets.of(pod) or PodSet(pod.metadata.namespace, pod.metadata.labels[POD_SET_LABEL])
        return BEING_PLANNED if podset.released else why_held(podset, pod)

    def planned_node(self, pod: Pod) -> str | None:
        state = self.state_of(pod)
        return None if state is None else state.planned_node(pod)

    def is_given_up(self, pod: Pod) -> bool:
        """Whether binding the pod to its planned node has failed too often."""
        state = self.state_of(pod)
        member = None if state is None else state.member(pod)
        return member is not None and member.failures >= _MOST_FAILURES

    def refute(self, pod: Pod, node: str) -> None:
        """Plan the pod again: its planned node does not fit."""
        if (state := self.state_of(pod)) is not None:
            self._admission.apply(state, Refuted(pod.metadata.uid, node))
            state.status.refuted(pod.metadata.name, node)
            state.look(self._handle.now())

    def not_bound(self, pod: Pod, node: str) -> None:
        if (state := self.state_of(pod)) is not None:
            self._admission.apply(state, NotBound(pod.metadata.uid, node))

    def attempt_begins(self, pod: Pod) -> None:
        """Plan or hold the pod again if it lost its entry while a bind that failed kept its room."""
        if (state := self.state_of(pod)) is not None:
            self._admission.apply(state, TriedAgain(pod.metadata.uid))
            if state.needs_planning:
                state.look(self._handle.now())

    def permit(self, pod: Pod, node: str) -> Status | Wait | None:
        """Let the pod be bound, or have it wait for other pods or until its entry is stored."""
        state = self.state_of(pod)
        if state is None:
            return None
        self._admission.apply(state, Reserved(pod.metadata.uid, node))
        member = state.member(pod)
        match None if member is None else member.stage:
            case None | Stage.ALONE:
                return None
            case Stage.BINDING if state.planned_node(pod) == node:
                return None
            case Stage.GATHERED:
                return Wait(MAX_PERMIT_WAIT)
            case Stage.FOUND:
                state.look(self._handle.now())
                return Wait(MAX_PERMIT_WAIT)
        # Since the attempt began, the set was held or has to be planned again.
        return Status.unschedulable(self.why_waits(pod) or BEING_PLANNED)

    # Read by metrics, from any thread.

    def counts(self) -> Counts:
        states = self._states.copy().values()
        held = [state for state in states if not state.podset.released]
        return Counts(sum(len(state.members) for state in held), len(held), len(states) - len(held))

    @property
    def planned_again(self) -> int:
        """The number of plans made because a planned node no longer fit."""
        return self._errands.again

    @property
    def planner_failures(self) -> dict[tuple[str, str], int]:
        """The number of failures of planner services, by name and kind of failure."""
        return dict(self._source.failures)

    # Called by the engine.

    @property
    def deadline(self) -> float | None:
        return self._agenda.deadline

    def changed(self, change: Change[Any], *, now: float) -> None:
        for podset in self.sets.changed(change):
            self._set_changed(self._states.get(podset.key) or self._begin(podset, now=now), change, now=now)
        if self._stuck and _may_help(change):
            self._stuck.help(now=now)
        if isinstance(change.object, Service):
            for state in [each for each in self._states.values() if each.members.count(Stage.ALONE)]:
                # A planner may exist by now.
                self._start_over(state, now=now)

    def _set_changed(self, state: SetState, change: Change[Any], *, now: float) -> None:
        match change.object:
            case Pod() as pod:
                self._pod_changed(state, pod, now=now)
                if state.members.count(Stage.BARRED) and _is_another(change.old, change.new):
                    state.retry(now=now)
            case ScheduleTrigger() if state.meaning != state.current_meaning:
                self._start_over(state, now=now)
            case ScheduleTrigger() if _has_more_time(change.old, change.new):
                if state.members.count(Stage.BARRED):
                    self._errands.plan_again(state)
                    state.look(now)
            case SchedulePlan():
                state.outdated = True
                state.look(now)
                if state.entries.watched(now=now):
                    self._start_over(state, now=now)

    def advance(self, *, now: float) -> Iterable[Errand]:
        for key in self._agenda.due(now):
            if (state := self._states.get(key)) is None:
                continue
            for later in (state.retry_at, state.entries.watch_due):
                if later is not None and later > now:
                    state.look(later)
            yield from self._look_at(state, now=now)

    def _look_at(self, state: SetState, *, now: float) -> Iterable[Errand]:
        if state.entries.watched(now=now):
            self._start_over(state, now=now)
        self._inform(state)
        yield from self._errands.open_gates(state)
        if state.to_enter:
            self._admission.let_in(state)
        if state.under_way:
            return
        if state.retry_at is not None and state.retry_at <= now:
            self._errands.plan_again(state)
        errand = self._next_errand(state, now=now)
        if errand is not None:
            state.under_way = True
            yield errand

    def _next_errand(self, state: SetState, *, now: float) -> Errand | None:
        """Return the next errand of the set, one at a time: planning comes first, and the status last."""
        podset = state.podset
        if state.needs_planning or state.outdated:
            if state.storing.until > now:
                state.look(state.storing.until)
            elif state.needs_planning:
                return self._errands.plan(state)
            else:
                return self._errands.correct(state)
        due = max(state.status_written + BETWEEN_WRITES, state.telling.until)
        if due > now and not podset.is_empty:
            # Whether the status changed is checked only when it may be written, because that visits all pods.
            state.look(due)
        elif state.status.is_outdated(state.entries.current, state.unplaced()):
            if due <= now:
                return self._errands.write_status(state)
            state.look(due)
        elif podset.is_empty:
            del self._states[podset.key]
            podset.in_use = False
            self.sets.forget_if_empty(podset)
        return None

    def _begin(self, podset: PodSet, *, now: float) -> SetState:
        name = self._handle.chooser.profile.scheduler_name
        enters_all = self._settings.fallback == "built-in"
        state = SetState(podset, name, self._agenda, self._handle.tell, enters_all=enters_all)
        self._states[podset.key] = state
        podset.in_use = True
        state.entries.watched(now=now)
        return state

    def _pod_changed(self, state: SetState, pod: Pod, *, now: float) -> None:
        podset, uid, name = state.podset, pod.metadata.uid, pod.metadata.name
        if uid in podset.pending:
            if state.is_member(pod):
                self._admission.apply(state, Seen(podset.pending[uid]))
            if state.entries.awaits(name):
                state.outdated = True
            state.look(now)
            return
        bound = podset.bound.get(uid)
        state.gate_backoffs.pop(uid, None)
        if bound is None:
            state.entries.gone.add(name)
        self._admission.apply(state, Left(uid, gone=bound is None))
        if bound is None and state.members.count(Stage.BARRED):
            # The others may fit without it.
            state.retry(now=now)
        if state.entries.current.get(name) != (None if bound is None else bound.spec.node_name):
            state.outdated = True
        state.look(now + BETWEEN_WRITES)

    def _start_over(self, state: SetState, *, now: float) -> None:
        """Start over: the trigger has a new meaning, or another client has changed the plan."""
        state.meaning, state.retry_at = state.current_meaning, None
        self._admission.apply(state, Recalled(self._admission.in_flight(state)))
        self._admission.apply(state, Reviewed())
        state.outdated = True
        state.look(now)

    def _inform(self, state: SetState) -> None:
        """Write why pods wait, except for pods with a gate: the API server has set their condition."""
        uids, state.to_inform = sorted(state.to_inform), set()
        for uid in uids:
            member = state.members.get(uid)
            if member is None or member.pod.spec.scheduling_gates:
                continue
            why = condition_of(state.podset, member, not_stored=state.not_stored)
            if why is None or is_told(member.pod, *why):
                continue
            normal = why.reason == REASON_WAITING
            self._handle.tell(
                RecordEvent.of(
                    member.pod,
                    kind="Normal" if normal else "Warning",
                    reason=why.reason if normal else EVENT_FAILED_SCHEDULING,
                    action="Scheduling",
                    note=why.message,
                )
            )
            self._handle.tell(SetCondition.of(member.pod, waiting_condition(member.pod, *why)))


def _is_another(old: object, new: object) -> bool:
    """Whether the pod has changed in a way that decides where it fits."""
    return isinstance(old, Pod) and isinstance(new, Pod) and shape_key(old) != shape_key(new)


def _has_more_time(old: object, new: object) -> bool:
    """Whether the trigger allows a longer search."""
    if not isinstance(old, ScheduleTrigger) or not isinstance(new, ScheduleTrigger):
        return False
    return new.spec.budget_seconds > old.spec.budget_seconds


def _may_help(change: Change[Any]) -> bool:
    """Whether the change may help a pod that did not fit before."""
    match change:
        case Change(None | Node() as old, None | Node() as new):
            return any(True for _ in node_events(old, new))
        case Change(None | Pod() as old, None | Pod() as new):
            had = old is not None and bool(old.spec.node_name) and not old.terminal
            has = new is not None and bool(new.spec.node_name) and not new.terminal
            return had != has or (has and _is_another(old, new))
    return not isinstance(change.object, ScheduleTrigger | SchedulePlan)
