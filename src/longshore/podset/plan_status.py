"""The status of a plan: how good it is, who made it, how many pods follow it, and which have no node."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Literal

import msgspec

from longshore.api.pod_set import (
    API_VERSION,
    MAX_UNPLACED,
    Condition,
    SchedulePlan,
    SchedulePlanStatus,
    UnplacedPod,
)
from longshore.framework.effects import MAX_NOTE, Ask, Outcome, PatchObject, RecordEvent, Succeeded, Tell
from longshore.planning.plan import BUILT_IN
from longshore.podset.conditions import condition, merged
from longshore.podset.plan_source import PlanAnswer
from longshore.podset.sets import PodSet
from longshore.podset.texts import REASON_PLANNER

EVENT_PLANNED = "Planned"
EVENT_PLANNER_FAILED = "PlannerFailed"
EVENT_NO_PLANNER = "NoPlanner"
EVENT_NOT_STORED = "PlanNotStored"

COMPLETE = "Complete"
PLANNER_ANSWERED = "PlannerAnswered"
PLANNED_AGAIN = "PlannedAgain"

# The longest number in a condition that is read back: another client may have written it.
_MOST_DIGITS = 9


class PlanStatus:
    def __init__(self, podset: PodSet, tell: Callable[[Tell], None]) -> None:
        self._podset = podset
        self._tell = tell
        self._answer: PlanAnswer | None = None
        self._whole = False
        # How often it was planned again because a node no longer fit, and the last time.
        self._again = 0
        self._refuted = ""
        # What the last events said.
        self._trouble = ""
        self._not_stored = ""
        # The version of the plan that a status was last written to, and that status. The watch may be behind,
        # and the CRDs of Pallet ignore the write.
        self._written: tuple[str, SchedulePlanStatus] | None = None

    def refuted(self, pod: str, node: str) -> None:
        self._again = (self._again or _times_before(self._podset.plan)) + 1
        self._refuted = f"{node} no longer fits {pod}"

    def made(self, answer: PlanAnswer, *, whole: bool) -> None:
        """`whole`: the answer is about all entries of the plan, and so is its bound."""
        self._answer, self._whole = answer, whole

    def tell(self, answer: PlanAnswer) -> None:
        """Record events about the stored plan. A planner that fails again in the same way is not reported."""
        self._not_stored = ""
        plan = answer.plan
        if plan.assignments:
            note = f"planned {len(plan.assignments)} pods by {plan.planner} in {plan.seconds:.3f} s"
            if plan.left_out:
                note += f"; {len(plan.left_out)} left out: {plan.left_out[0].reason}"
            self._event("Normal", EVENT_PLANNED, note)
        if answer.trouble and answer.trouble != self._trouble:
            reason = EVENT_NO_PLANNER if answer.no_planner else EVENT_PLANNER_FAILED
            self._event("Warning", reason, answer.trouble)
        self._trouble = answer.trouble

    def not_stored(self, why: str) -> None:
        if why != self._not_stored:
            self._not_stored = why
            self._event("Warning", EVENT_NOT_STORED, f"the plan could not be stored: {why}")

    def _event(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        """Record an event on the trigger: there may be no plan yet."""
        trigger = self._podset.trigger
        if trigger is not None:
            meta = trigger.metadata
            event = RecordEvent(
                meta.namespace,
                meta.name,
                meta.uid,
                kind,
                reason,
                "Planning",
                note[:MAX_NOTE],
                kind="ScheduleTrigger",
                api_version=API_VERSION,
            )
            self._tell(event)

    def is_outdated(self, entries: Mapping[str, str], unplaced: Sequence[UnplacedPod]) -> bool:
        stored = self._podset.plan
        if stored is None:
            return False
        wanted = _without_times(self._wanted(stored, entries, unplaced, wall=0.0))
        if self._written == (stored.metadata.resource_version, wanted):
            return False
        return wanted != _without_times(stored.status)

    def write(
        self, entries: Mapping[str, str], unplaced: Sequence[UnplacedPod], *, wall: float
    ) -> Generator[Ask, Outcome, bool]:
        """Return whether the status is written, or there is no plan to write it to."""
        stored = self._podset.plan
        if stored is None:
            return True
        wanted, meta = self._wanted(stored, entries, unplaced, wall=wall), stored.metadata
        patch = {"status": msgspec.to_builtins(wanted)}
        outcome = yield PatchObject(SchedulePlan, meta.namespace, meta.name, patch, subresource="status")
        if isinstance(outcome, Succeeded):
            self._written = (meta.resource_version, _without_times(wanted))
        return isinstance(outcome, Succeeded)

    def _wanted(
        self,
        stored: SchedulePlan,
        entries: Mapping[str, str],
        unplaced: Sequence[UnplacedPod],
        *,
        wall: float,
    ) -> SchedulePlanStatus:
        old, generation = stored.status, stored.metadata.generation
        nodes = {pod.metadata.name: pod.spec.node_name for pod in self._podset.bound.values()}
        conditions = self._conditions(old, len(unplaced), generation)
        status = msgspec.structs.replace(
            old,
            planned=len(entries),
            following=sum(nodes.get(pod) == node for pod, node in entries.items()),
            unplaced=tuple(unplaced[:MAX_UNPLACED]),
            conditions=merged(conditions, old.conditions, wall=wall),
            observed_generation=generation,
        )
        if self._answer is None:
            return status
        made = self._answer.plan
        return msgspec.structs.replace(
            status,
            objective=_rounded(made.objective),
            bound=_rounded(made.bound) if self._whole else None,
            gap=_rounded(made.gap) if self._whole else None,
            planner=made.planner,
            seconds=round(made.seconds, 3),
        )

    def _conditions(self, old: SchedulePlanStatus, unplaced: int, generation: int) -> list[Condition]:
        """Conditions from before a restart stay until there are newer ones."""
        answer = self._answer
        known = {each.type: each for each in old.conditions}
        if answer is not None or COMPLETE in known:
            missing = "1 pod has no node" if unplaced == 1 else f"{unplaced} pods have no node"
            known[COMPLETE] = condition(
                COMPLETE,
                not unplaced,
                "PodsLeftOut" if unplaced else "AllPodsPlaced",
                missing if unplaced else "",
                generation=generation,
            )
        if answer is not None:
            known[PLANNER_ANSWERED] = condition(
                PLANNER_ANSWERED,
                not answer.trouble,
                _how_answered(answer),
                answer.trouble[:MAX_NOTE],
                generation=generation,
            )
        if self._again:
            times = "1 time" if self._again == 1 else f"{self._again} times"
            why = f"{times}, the last because {self._refuted}"
            known[PLANNED_AGAIN] = condition(PLANNED_AGAIN, True, "NodeInvalid", why, generation=generation)
        return list(known.values())


def _how_answered(answer: PlanAnswer) -> str:
    """Return the reason of the condition PlannerAnswered."""
    if not answer.trouble:
        return "Answered"
    if answer.barred == REASON_PLANNER:
        return "NoFallback"
    return "FellBack" if answer.plan.planner == BUILT_IN else "AnotherAnswered"


def _times_before(plan: SchedulePlan | None) -> int:
    """Return how often it had been planned again before this process started."""
    conditions = () if plan is None else plan.status.conditions
    times = next((each.message.partition(" ")[0] for each in conditions if each.type == PLANNED_AGAIN), "")
    return int(times) if times.isdecimal() and len(times) <= _MOST_DIGITS else 0


def _rounded(value: float | None) -> float | None:
    """Return the value without the margin that bounds are computed with."""
    return None if value is None else round(value, 6)


def _without_times(status: SchedulePlanStatus) -> SchedulePlanStatus:
    bare = tuple(msgspec.structs.replace(each, last_transition_time="") for each in status.conditions)
    return msgspec.structs.replace(status, conditions=bare)
