"""The state of one set that its objects do not have: its members, its plan, and its open work."""

from collections.abc import Callable

from longshore.api import Pod
from longshore.api.pod_set import UnplacedPod
from longshore.framework.effects import Tell
from longshore.podset.backoff import LONGEST, Backoff
from longshore.podset.due_sets import DueSets, SetKey
from longshore.podset.members import Facts, Member, Members
from longshore.podset.plan_entries import PlanEntries
from longshore.podset.plan_status import PlanStatus
from longshore.podset.sets import PodSet
from longshore.podset.stages import Stage
from longshore.podset.texts import why_held

# Seconds until a plan that was refused is stored, at most: its pods wait for it.
_LONGEST_STORING = 60.0


class SetState:
    def __init__(
        self,
        podset: PodSet,
        scheduler_name: str,
        agenda: DueSets,
        tell: Callable[[Tell], None],
        *,
        enters_all: bool,
    ) -> None:
        self.podset = podset
        self.status = PlanStatus(podset, tell)
        self.members = Members()
        self.entries = PlanEntries(podset, scheduler_name, enters_all=enters_all)
        self._scheduler_name = scheduler_name
        self._agenda = agenda
        # What the triggers meant when all pods were last looked at.
        self.meaning: object = None
        # UIDs of pods to let into the queue, to tell why they wait, and to remove the gate of.
        self.to_enter: set[str] = set()
        self.to_inform: set[str] = set()
        self.to_open: set[str] = set()
        # UIDs of pods whose gate is being removed, and when to repeat that after it failed.
        self.opening: set[str] = set()
        self.gate_backoffs: dict[str, Backoff] = {}
        # A plan or its status is being made or written.
        self.under_way = False
        # The stored plan may differ from the wanted one.
        self.outdated = False
        # When the barred pods are planned again even if nothing happens, and not before when.
        self.retry_at: float | None = None
        self.not_before = 0.0
        # A change that may help came while the plan was made.
        self.helped = False
        self.status_written = float("-inf")
        # Refused writes of the plan and of its status; why the plan is not stored, if that lasts.
        self.storing = Backoff(longest=_LONGEST_STORING)
        self.telling = Backoff(longest=LONGEST)
        self.not_stored = ""

    @property
    def facts(self) -> Facts:
        return Facts(self.podset.released, self.all_or_nothing, self.entries.current)

    @property
    def all_or_nothing(self) -> bool:
        trigger = self.podset.trigger
        return trigger is not None and trigger.spec.all_or_nothing

    @property
    def needs_planning(self) -> bool:
        return bool(self.members.count(Stage.UNPLANNED, Stage.FOUND))

    @property
    def current_meaning(self) -> object:
        """The fields of its triggers that matter to the pods of the set."""
        trigger = self.podset.trigger
        if self.podset.released and trigger is not None:
            return trigger.spec.all_or_nothing, trigger.spec.objective
        return why_held(self.podset)

    def is_member(self, pod: Pod) -> bool:
        """Whether the pod is scheduled by this profile."""
        return pod.spec.scheduler_name == self._scheduler_name

    def member(self, pod: Pod) -> Member | None:
        return self.members.get(pod.metadata.uid)

    def planned_node(self, pod: Pod) -> str | None:
        member = self.member(pod)
        return None if member is None else member.planned_node(self.entries.current)

    def unplaced(self) -> list[UnplacedPod]:
        """The pods that have no node, with the reasons that the status of the plan shows."""
        without = self.members.of(Stage.LEFT_OUT, Stage.FOUND, Stage.BARRED)
        if self.not_stored:
            without += self.members.of(Stage.UNPLANNED)
        found = []
        for member in without:
            delayed = self.not_stored and member.stage in (Stage.UNPLANNED, Stage.FOUND)
            why = self.not_stored if delayed else member.why.message if member.why else ""
            found.append(UnplacedPod(member.name, why))
        return found

    def look(self, at: float) -> None:
        """Look at the set at this time."""
        self._agenda.put(self.podset.key, at)

    def retry(self, *, now: float) -> None:
        """Plan the barred pods again soon, after a change that may help them."""
        self.retry_at = max(now, self.not_before)
        self.look(self.retry_at)


class StuckSets:
    """Sets with barred pods, or being planned: what happens in the cluster may help them."""

    def __init__(self) -> None:
        self._sets: dict[SetKey, SetState] = {}

    def __bool__(self) -> bool:
        return bool(self._sets)

    def add(self, state: SetState) -> None:
        self._sets[state.podset.key] = state

    def discard(self, state: SetState) -> None:
        self._sets.pop(state.podset.key, None)

    def help(self, *, now: float) -> None:
        """Look at these sets, because there may be room now."""
        for state in list(self._sets.values()):
            if state.members.count(Stage.BARRED):
                state.retry(now=now)
            elif state.under_way:
                state.helped = True
            else:
                self.discard(state)
