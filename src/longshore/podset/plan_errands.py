"""The writes for a set, each as an errand: its plan, the status of the plan, and the removal of gates.

The plan is stored before any pod is bound by it, so that a scheduler that takes over after a crash continues
with the same one.
"""

from collections.abc import Generator, Iterator

from longshore.api import Pod
from longshore.api.pod_set import ScheduleTrigger
from longshore.framework.controllers import Errand
from longshore.framework.effects import MAX_NOTE, Ask, Conflict, Outcome, PatchObject, Succeeded
from longshore.planning.handle import PlanningHandle
from longshore.planning.plan import LeftOut, Plan
from longshore.podset.admission import Admission
from longshore.podset.backoff import LONGEST, Backoff
from longshore.podset.plan_source import PlanAnswer, PlanSource
from longshore.podset.set_state import SetState, StuckSets
from longshore.podset.stages import Stage
from longshore.podset.texts import NOT_STORED, REASON_GATES, REASON_PLANNER, why_gated
from longshore.podset.transitions import FoundStored, PlannedAgain, PlanStored

# Seconds between two writes of a plan that only shrinks, or of its status.
BETWEEN_WRITES = 1.0
# Seconds after which barred pods are planned again even if nothing changes.
_AGAIN = 10.0
# A set that does not fit is planned again when something changes, but only after this many times
# the duration of the planning, within these limits in seconds.
_REST = 20.0
_SHORTEST_REST = 1.0
_LONGEST_REST = 60.0


class PlanErrands:
    def __init__(
        self, handle: PlanningHandle, source: PlanSource, admission: Admission, stuck: StuckSets
    ) -> None:
        self._handle = handle
        self._source = source
        self._admission = admission
        self._stuck = stuck
        # The number of plans made because a planned node no longer fit.
        self.again = 0

    def plan(self, state: SetState) -> Errand:
        """Plan pods without an entry, store that together with the nodes that pods found, and let them go."""
        done = False
        state.helped = False
        self._stuck.add(state)
        state.entries.note_left_behind(wall=self._handle.wall_time)
        try:
            done = yield from self._plan(state)
        finally:
            if not state.members.count(Stage.BARRED):
                self._stuck.discard(state)
            self._end(state, at_once=done)

    def _plan(self, state: SetState) -> Generator[Ask, Outcome, bool]:
        admission, members = self._admission, state.members
        if state.all_or_nothing and members.count(Stage.UNPLANNED):
            admission.apply(state, PlannedAgain(whole=True, in_flight=admission.in_flight(state)))
        pods, meaning, trigger = self._to_plan(state), state.meaning, state.podset.trigger
        answer: PlanAnswer | None = None
        if pods and trigger is not None:
            self.again += any(member.refused for member in members.of(Stage.UNPLANNED))
            answer = yield from self._answer(state, trigger)
            if state.meaning != meaning:
                # Held again, or planned in another way.
                return True
            # Another client may have entered some of them meanwhile.
            waiting = {member.uid for member in members.of(Stage.UNPLANNED)}
            pods = {uid: pod for uid, pod in pods.items() if uid in waiting}
        made = answer.plan if answer is not None and pods and not answer.no_planner else None
        assignments = [each for each in made.assignments if each.uid in pods] if made else []
        planned = {pods[each.uid].metadata.name: each.node for each in assignments}
        if made is not None:
            self._handle.planned(
                made.planner, made.seconds, placed=len(made.assignments), left_out=len(made.left_out)
            )
        for each in assignments:
            admission.keep_room(state, pods[each.uid], each.node)
        found = members.of(Stage.FOUND)
        entries = state.entries.revised(
            {**planned, **{member.name: member.found for member in found}},
            without={pod.metadata.name for pod in pods.values()},
        )
        if entries != state.entries.current and not (yield from self._store(state, entries)):
            admission.free_room(pods.values())
            return False
        if answer is not None:
            if made is not None:
                state.status.made(answer, whole=planned.keys() == state.entries.current.keys())
            self._settle(state, list(pods), answer)
        placed = {member.uid for member in found if admission.is_placed(member.pod)}
        admission.apply(state, FoundStored({member.uid for member in found}, placed))
        admission.let_in(state)
        if answer is not None and pods:
            state.status.tell(answer)
        return bool(pods or found)

    def _to_plan(self, state: SetState) -> dict[str, Pod]:
        """Return the pods to plan, by UID. Pods that may be bound already wait until the watch reports it."""
        members = state.members.of(Stage.UNPLANNED)
        pods = {member.uid: member.pod for member in members if not self._admission.is_placed(member.pod)}
        self._admission.free_room(pods.values())
        return dict(sorted(pods.items()))

    def _answer(self, state: SetState, trigger: ScheduleTrigger) -> Generator[Ask, Outcome, PlanAnswer]:
        """Return the answer of the planner; all plans are requested here."""
        members = [
            each for each in state.members.of(Stage.UNPLANNED) if not self._admission.is_placed(each.pod)
        ]
        gated = next(iter(state.members.of(Stage.GATED)), None)
        if trigger.spec.all_or_nothing and gated is not None:
            why = why_gated(gated.pod)
            left_out = tuple(LeftOut(each.pod.key, each.uid, why) for each in members)
            return PlanAnswer(Plan((), left_out), barred=REASON_GATES)
        uids, meaning = sorted(member.uid for member in members), state.meaning

        def waiting() -> dict[str, Pod]:
            if state.meaning != meaning:
                return {}
            known = [each for uid in uids if (each := state.members.get(uid)) is not None]
            return {
                each.uid: each.pod
                for each in known
                if each.stage is Stage.UNPLANNED and not self._admission.is_placed(each.pod)
            }

        entries = state.entries.current
        nodes = {member.uid: member.planned_node(entries) for member in members}
        return (
            yield from self._source.plan(
                state.podset,
                trigger,
                waiting,
                kept={uid: node for uid in uids if (node := nodes[uid]) is not None},
                refused={member.uid: member.refused for member in members if member.refused},
            )
        )

    def _settle(self, state: SetState, uids: list[str], answer: PlanAnswer) -> None:
        """Move the pods of the stored plan on, and set a time to plan barred pods again."""
        now = self._handle.now()
        left_out = {each.uid: each.reason for each in answer.plan.left_out}
        # Nothing need change for another planner to answer, or for a refused node to fit after all.
        refused = {member.uid for member in state.members if member.refused}
        by_itself = answer.barred == REASON_PLANNER or not refused.isdisjoint(left_out)
        self._admission.apply(state, PlanStored(uids, left_out, answer.barred, answer.no_planner))
        if state.members.count(Stage.BARRED):
            self._stuck.add(state)
            rest = min(_REST * answer.plan.seconds, _LONGEST_REST)
            state.not_before = now + max(_SHORTEST_REST, rest)
            if state.helped:
                state.retry(now=now)
            elif by_itself:
                state.retry_at = now + _AGAIN
                state.look(state.retry_at)

    def plan_again(self, state: SetState) -> None:
        """Plan the barred pods again, after a change or when it is time."""
        state.retry_at = None
        self._admission.apply(state, PlannedAgain(whole=False))
        self._stuck.discard(state)

    def _store(self, state: SetState, wanted: dict[str, str]) -> Generator[Ask, Outcome, bool]:
        entries = state.entries
        if not wanted and state.podset.plan is None:
            # Stored a moment ago: the watch will report the object to delete.
            return False
        before = entries.version
        entries.writing = wanted
        outcome = yield from entries.store(wanted)
        entries.writing = None
        now = self._handle.now()
        # The watch outranks an answer that says the write failed.
        if isinstance(outcome, Succeeded) or entries.current == wanted:
            state.storing.succeeded()
            state.not_stored = ""
            entries.wrote(wanted, now=now)
            if entries.watch_due is not None:
                state.look(entries.watch_due)
            return True
        if isinstance(outcome, Conflict) and entries.version != before:
            # The watch has already reported a change by another client.
            state.look(now)
            return False
        state.storing.failed(now=now)
        if not isinstance(outcome, Conflict):
            state.status.not_stored(outcome.message)
        if state.storing.lasts:
            state.not_stored = NOT_STORED.format(why=outcome.message)[:MAX_NOTE]
            state.to_inform.update(each.uid for each in state.members.of(Stage.UNPLANNED, Stage.FOUND))
        return False

    def correct(self, state: SetState) -> Errand:
        """Update the plan for pods that are gone, have another node, or have arrived."""
        try:
            state.outdated = False
            state.entries.note_left_behind(wall=self._handle.wall_time)
            current = state.entries.current
            wrong = {each.name for each in state.members if current.get(each.name) in each.refused}
            entries = state.entries.revised(without=wrong)
            if entries != current or not state.entries.is_adopted(entries):
                state.outdated = not (yield from self._store(state, entries))
        finally:
            self._end(state)

    def write_status(self, state: SetState) -> Errand:
        try:
            state.status_written = self._handle.now()
            written = yield from state.status.write(
                state.entries.current, state.unplaced(), wall=self._handle.wall_time
            )
            if written:
                state.telling.succeeded()
            else:
                state.telling.failed(now=self._handle.now())
        finally:
            self._end(state)

    def open_gates(self, state: SetState) -> Iterator[Errand]:
        """Remove the gates of pods that are in the stored plan."""
        now = self._handle.now()
        for uid in sorted(state.to_open):
            backoff, member = state.gate_backoffs.get(uid), state.members.get(uid)
            if backoff is not None and backoff.until > now:
                state.look(backoff.until)
                continue
            state.to_open.discard(uid)
            if (
                member is not None
                and member.stage in (Stage.PLANNED, Stage.ALONE)
                and uid not in state.opening
            ):
                state.opening.add(uid)
                yield self._open_gate(state, member.pod)

    def _open_gate(self, state: SetState, pod: Pod) -> Errand:
        meta = pod.metadata
        patch = {"metadata": {"uid": meta.uid}, "spec": {"schedulingGates": None}}
        outcome = yield PatchObject(Pod, meta.namespace, meta.name, patch)
        state.opening.discard(meta.uid)
        member = state.members.get(meta.uid)
        if isinstance(outcome, Succeeded):
            state.gate_backoffs.pop(meta.uid, None)
        elif member is not None and member.pod.spec.scheduling_gates:
            backoff = state.gate_backoffs.setdefault(meta.uid, Backoff(longest=LONGEST))
            backoff.failed(now=self._handle.now())
            state.to_open.add(meta.uid)
            state.look(self._handle.now())

    def _end(self, state: SetState, *, at_once: bool = True) -> None:
        state.under_way = False
        later = 0.0 if at_once and state.needs_planning else BETWEEN_WRITES
        state.look(self._handle.now() + later)
