"""How the plan of a set is made and stored, and what follows from it; each is an errand.

The plan is stored before any pod is bound by it, so whoever takes over after a crash goes on with the same
one.
"""

from collections.abc import Generator, Iterator
from typing import Protocol

from longshore.api import Pod
from longshore.api.pod_set import ScheduleTrigger
from longshore.engine.cycle.reporting import EVENT_FAILED_SCHEDULING, REASON_UNSCHEDULABLE
from longshore.framework.controllers import Errand
from longshore.framework.effects import (
    MAX_NOTE,
    Ask,
    Conflict,
    Outcome,
    PatchObject,
    RecordEvent,
    SetCondition,
    Succeeded,
)
from longshore.planning.handle import PlanningHandle
from longshore.planning.plan import LeftOut, Plan
from longshore.podset.agenda import SetKey
from longshore.podset.asking import Answer, Asking
from longshore.podset.backoff import LONGEST, Backoff
from longshore.podset.door import Door
from longshore.podset.planstatus import PlanStatus
from longshore.podset.setplan import GATE, Barred, SetPlan
from longshore.podset.storing import store
from longshore.podset.texts import (
    GATED,
    NOT_STORED,
    REASON_GATES,
    REASON_PLANNER,
    REASON_STORE,
    REASON_WAITING,
    is_told,
    waiting_condition,
    why_held,
)

# Seconds between two writes of a plan that only shrinks, or of its status.
BETWEEN_WRITES = 1.0
# When barred pods are planned again even if nothing changes before.
_AGAIN = 10.0
# A set that does not fit is planned again when something changes, but then rests so many times as long as
# the planning took, though not for ever.
_REST = 20.0
_SHORTEST_REST = 1.0
_LONGEST_REST = 60.0


class Look(Protocol):
    def __call__(self, plan: SetPlan, *, after: float = 0.0) -> None:
        """Look at the set again after so many seconds."""
        ...


class Making:
    def __init__(self, handle: PlanningHandle, asking: Asking, door: Door, look: Look) -> None:
        self._handle = handle
        self._asking = asking
        self._door = door
        self._look = look
        # Sets with barred pods, or being planned: what happens in the cluster may help them.
        self.stuck: dict[SetKey, SetPlan] = {}
        # How many plans were made because a planned node would not do any more.
        self.again = 0

    # The plan.

    def make(self, plan: SetPlan, status: PlanStatus) -> Errand:
        """Plan what has no entry yet, store it together with what found a node by itself, let all go."""
        done = False
        plan.helped = False
        self.stuck[plan.podset.key] = plan
        plan.note_left_behind(wall=self._handle.wall_time)
        try:
            done = yield from self._make(plan, status)
        finally:
            plan.under_way = False
            if not plan.barred:
                self.stuck.pop(plan.podset.key, None)
            self._look(plan, after=0.0 if done and plan.needs_planning else BETWEEN_WRITES)

    def _make(self, plan: SetPlan, status: PlanStatus) -> Generator[Ask, Outcome, bool]:
        if plan.all_or_nothing and plan.unplanned:
            self._door.take_back(plan)
        pods, meant, trigger = self._to_plan(plan), plan.meaning, plan.podset.trigger
        answer = None
        if pods and trigger is not None:
            self.again += any(pod.metadata.uid in plan.refused for pod in pods)
            answer = yield from self._answer(plan, trigger, pods)
            if plan.meaning != meant:
                # Held again, or to be planned in another way.
                return True
            # Some may have been planned by hand meanwhile.
            pods = [pod for pod in pods if pod.metadata.uid in plan.unplanned]
            if pods and not answer.by_themselves:
                made = answer.plan
                self._handle.planned(
                    made.planner, made.seconds, placed=len(made.assignments), left_out=len(made.left_out)
                )
        admitted = dict(plan.admitted)
        waiting = {pod.metadata.uid for pod in pods}
        assignments = () if answer is None else answer.plan.assignments
        planned = {each.pod.partition("/")[2]: each.node for each in assignments if each.uid in waiting}
        for pod in pods:
            if (node := planned.get(pod.metadata.name)) is not None:
                self._door.promise(plan, pod, node)
        entries = plan.revised(
            {**planned, **dict(admitted.values())}, without={pod.metadata.name for pod in pods}
        )
        if entries != plan.entries and not (yield from self._store(plan, entries, status)):
            self._door.take_back_room(pods)
            return False
        if answer is not None:
            if pods and not answer.by_themselves:
                status.made(answer, whole=planned.keys() == plan.entries.keys())
            self._sort_out(plan, pods, answer)
        self._door.admit(plan, [uid for uid in admitted if uid in plan.admitted])
        self._door.let_in(plan)
        if answer is not None and pods:
            status.tell(answer)
        return bool(pods or admitted)

    def _to_plan(self, plan: SetPlan) -> list[Pod]:
        """Not those that may have been bound: that is for the watch to tell."""
        if not plan.released:
            return []
        pods = [plan.podset.pending[uid] for uid in sorted(plan.unplanned)]
        found = [pod for pod in pods if not self._door.is_placed(pod)]
        self._door.take_back_room(found)
        return found

    def _answer(
        self, plan: SetPlan, trigger: ScheduleTrigger, pods: list[Pod]
    ) -> Generator[Ask, Outcome, Answer]:
        podset = plan.podset
        gated = next((pod for pod in podset.pending.values() if _is_shut(plan, pod)), None)
        if trigger.spec.all_or_nothing and gated is not None:
            return _none_go(pods, gated)
        uids, meant = [pod.metadata.uid for pod in pods], plan.meaning

        def waiting() -> dict[str, Pod]:
            if plan.meaning != meant:
                return {}
            known = {uid: podset.pending[uid] for uid in uids if uid in plan.unplanned}
            return {uid: pod for uid, pod in known.items() if not self._door.is_placed(pod)}

        return (
            yield from self._asking.plan(
                podset,
                waiting,
                trigger,
                kept={pod.metadata.uid: node for pod in pods if (node := plan.entry(pod)) is not None},
                refused={uid: nodes for uid, nodes in plan.refused.items() if uid in uids},
            )
        )

    def _sort_out(self, plan: SetPlan, pods: list[Pod], answer: Answer) -> None:
        """The plan is stored: what becomes of each pod."""
        now = self._handle.now()
        left_out = {each.uid: each.reason for each in answer.plan.left_out}
        # Nothing need change for another planner to answer, or for a refused node to do after all.
        by_itself = answer.barred == REASON_PLANNER or not left_out.keys().isdisjoint(plan.refused)
        for pod in pods:
            uid = pod.metadata.uid
            if answer.by_themselves and uid in plan.unplanned:
                plan.unplanned.discard(uid)
                plan.by_themselves.add(uid)
                self.make_ready(plan, pod)
                continue
            # Not if the watch has told of the stored plan before, or of something else.
            if uid not in plan.unplanned or (uid not in left_out and plan.entry(pod) is None):
                continue
            plan.unplanned.discard(uid)
            if uid not in left_out:
                self.make_ready(plan, pod)
                continue
            plan.refused.pop(uid, None)
            if answer.barred or pod.spec.scheduling_gates:
                plan.barred[uid] = Barred(answer.barred or REASON_UNSCHEDULABLE, left_out[uid])
                self.tell_if_news(plan, pod)
            else:
                plan.left_out[uid] = left_out[uid]
                plan.ready.add(uid)
        if plan.barred:
            self.stuck[plan.podset.key] = plan
            plan.not_before = now + max(_SHORTEST_REST, min(_REST * answer.plan.seconds, _LONGEST_REST))
            if plan.helped:
                plan.retry_at = plan.not_before
            elif by_itself:
                plan.retry_at = now + _AGAIN
            if plan.retry_at is not None:
                self._look(plan, after=plan.retry_at - now)

    def try_again(self, plan: SetPlan) -> None:
        """Something has changed, or the time has come: plan the barred pods anew."""
        plan.retry_at = None
        plan.unplanned |= plan.barred.keys()
        plan.barred.clear()
        self.stuck.pop(plan.podset.key, None)

    def make_ready(self, plan: SetPlan, pod: Pod) -> None:
        """The pod has its entry: it may go, as soon as it has no gate."""
        uid, node = pod.metadata.uid, plan.entry(pod)
        if node is not None:
            self._door.promise(plan, pod, node)
        if not pod.spec.scheduling_gates:
            plan.ready.add(uid)
        elif uid not in plan.opening:
            plan.closed.add(uid)

    def _store(
        self, plan: SetPlan, entries: dict[str, str], status: PlanStatus
    ) -> Generator[Ask, Outcome, bool]:
        if not entries and plan.podset.plan is None:
            # Stored by us a moment ago: the watch will tell what is to be deleted.
            return False
        before = _version(plan)
        plan.writing = entries
        outcome = yield from store(plan, entries)
        plan.writing = None
        # The watch outranks an answer that it came to nothing.
        if isinstance(outcome, Succeeded) or plan.entries == entries:
            plan.storing.succeeded()
            plan.not_stored = ""
            plan.wrote(entries, now=self._handle.now())
            if plan.watch_due is not None:
                self._look(plan, after=plan.watch_due - self._handle.now())
            return True
        if isinstance(outcome, Conflict) and _version(plan) != before:
            # It is known how someone else has changed it: nothing is to be waited for.
            self._look(plan)
            return False
        why = outcome.message
        plan.storing.failed(now=self._handle.now())
        if not isinstance(outcome, Conflict):
            status.not_stored(why)
        if plan.storing.lasts:
            plan.not_stored = NOT_STORED.format(why=why)[:MAX_NOTE]
            for uid in (plan.unplanned | plan.admitted.keys()) & plan.podset.pending.keys():
                self.tell_if_news(plan, plan.podset.pending[uid])
        return False

    def correct(self, plan: SetPlan, status: PlanStatus) -> Errand:
        """Pods have gone, or are elsewhere than the plan says, or have come that their entries awaited."""
        try:
            plan.outdated = False
            plan.note_left_behind(wall=self._handle.wall_time)
            entries = plan.revised(without=_refused(plan))
            if entries != plan.entries or not plan.is_adopted(entries):
                plan.outdated = not (yield from self._store(plan, entries, status))
        finally:
            plan.under_way = False
            self._look(plan, after=0.0 if plan.needs_planning else BETWEEN_WRITES)

    # What follows from it.

    def write_status(self, plan: SetPlan, status: PlanStatus) -> Errand:
        try:
            plan.status_written = self._handle.now()
            if (yield from status.write(plan, wall=self._handle.wall_time)):
                plan.telling.succeeded()
            else:
                plan.telling.failed(now=self._handle.now())
        finally:
            plan.under_way = False
            self._look(plan, after=0.0 if plan.needs_planning else BETWEEN_WRITES)

    def open_gates(self, plan: SetPlan) -> Iterator[Errand]:
        """Of pods that are in the stored plan."""
        now = self._handle.now()
        later = {uid: wait.until for uid in plan.closed if (wait := plan.shut.get(uid)) and wait.until > now}
        if later:
            self._look(plan, after=min(later.values()) - now)
        closed = sorted(plan.closed - later.keys())
        plan.closed = set(later)
        plan.opening.update(closed)
        return (self._open_gate(plan, plan.podset.pending[uid]) for uid in closed)

    def _open_gate(self, plan: SetPlan, pod: Pod) -> Errand:
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid}, "spec": {"schedulingGates": None}}
        outcome = yield PatchObject(Pod, meta.namespace, meta.name, patch)
        plan.opening.discard(meta.uid)
        if isinstance(outcome, Succeeded):
            plan.shut.pop(meta.uid, None)
        elif plan.released and meta.uid in plan.podset.pending:
            plan.shut.setdefault(meta.uid, Backoff(longest=LONGEST)).failed(now=self._handle.now())
            plan.closed.add(meta.uid)
            self._look(plan)

    def tell_if_news(self, plan: SetPlan, pod: Pod) -> None:
        """Pods with a gate are told by the API server why they wait."""
        word = word_about(plan, pod)
        if word is not None and not pod.spec.scheduling_gates and not is_told(pod, *word):
            plan.untold.add(pod.metadata.uid)
        else:
            plan.untold.discard(pod.metadata.uid)

    def tell(self, plan: SetPlan) -> None:
        untold, plan.untold = sorted(plan.untold), set()
        for uid in untold:
            pod = plan.podset.pending.get(uid)
            word = None if pod is None else word_about(plan, pod)
            if pod is None or word is None:
                continue
            if word.reason == REASON_WAITING:
                event = RecordEvent.of(
                    pod, kind="Normal", reason=REASON_WAITING, action="Scheduling", note=word.message
                )
            else:
                event = RecordEvent.of(
                    pod,
                    kind="Warning",
                    reason=EVENT_FAILED_SCHEDULING,
                    action="Scheduling",
                    note=word.message,
                )
            self._handle.tell(event)
            self._handle.tell(SetCondition.of(pod, waiting_condition(pod, *word)))


def word_about(plan: SetPlan, pod: Pod) -> Barred | None:
    """Why the pod is not tried, if it is up to us to say so."""
    if not plan.released:
        return Barred(REASON_WAITING, why_held(plan.podset, pod))
    uid = pod.metadata.uid
    if plan.not_stored and (uid in plan.unplanned or uid in plan.admitted):
        return Barred(REASON_STORE, plan.not_stored)
    return plan.barred.get(uid)


def _is_shut(plan: SetPlan, pod: Pod) -> bool:
    """Held by somebody else."""
    return plan.is_for_us(pod) and not plan.is_ours(pod)


def _none_go(pods: list[Pod], gated: Pod) -> Answer:
    gate = next(gate.name for gate in gated.spec.scheduling_gates if gate.name != GATE)
    why = GATED.format(pod=gated.metadata.name, gate=gate)
    left_out = tuple(LeftOut(pod.key, pod.metadata.uid, why) for pod in pods)
    return Answer(Plan((), left_out), barred=REASON_GATES)


def _refused(plan: SetPlan) -> set[str]:
    """Names of pods whose entries turned out to be wrong."""
    pending = plan.podset.pending
    return {
        pending[uid].metadata.name
        for uid, nodes in plan.refused.items()
        if uid in pending and plan.entries.get(pending[uid].metadata.name) in nodes
    }


def _version(plan: SetPlan) -> str:
    stored = plan.podset.plan
    return "" if stored is None else stored.metadata.resource_version
