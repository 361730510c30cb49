"""The pods of a set, each in one stage, and what moves a pod from one stage to the next.

`react` is a pure function: it takes the members and an event, and returns the members that have changed and
the actions that follow. Whatever asks where a pod stands (the queue, its condition, the status of the plan,
`explain`, `plan --preview`) reads its stage.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from longshore.api import Pod
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.podset.stages import ADMITTED, IN_PERMIT, MISSING, Cause, Stage

# A pod with this scheduling gate is held by the API server too. It is removed when the pod is in the plan.
GATE = "longshore.dev/pod-set"


class Why(NamedTuple):
    """Why a pod waits: the reason and the message of its condition."""

    reason: str
    message: str


class Member(msgspec.Struct, frozen=True):
    pod: Pod
    stage: Stage = Stage.HELD
    # Why the plan has no node for the pod.
    why: Why | None = None
    # The node that a pod found by itself.
    found: str = ""
    # Nodes that were planned for the pod and did not fit when it was tried.
    refused: frozenset[str] = frozenset()
    # How often binding the pod to its planned node has failed.
    failures: int = 0

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def is_admitted(self) -> bool:
        """Whether the pod may be in the queue."""
        return self.stage in ADMITTED

    def planned_node(self, entries: Mapping[str, str]) -> str | None:
        """The node that the plan has for the pod, unless it did not fit."""
        node = entries.get(self.name)
        return None if node in self.refused else node


class Facts(NamedTuple):
    """What decides about all members alike. `entries` is the stored plan: names of pods with their nodes."""

    released: bool
    all_or_nothing: bool
    entries: Mapping[str, str]


class Members:
    """By UID, and by stage. `react` says how they change."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._stages: dict[Stage, dict[str, Member]] = {stage: {} for stage in Stage}
        self._spread: set[str] = set()

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def get(self, uid: str) -> Member | None:
        return self._members.get(uid)

    def of(self, *stages: Stage) -> list[Member]:
        return [member for stage in stages for member in self._stages[stage].values()]

    def count(self, *stages: Stage) -> int:
        return sum(len(self._stages[stage]) for stage in stages)

    @property
    def are_spread(self) -> bool:
        """Whether any of them has topology spread constraints."""
        return bool(self._spread)

    def update(self, changed: Mapping[str, Member | None]) -> None:
        for uid, member in changed.items():
            old = self._members.get(uid)
            if old is not None and (member is None or member.stage is not old.stage):
                del self._stages[old.stage][uid]
            if member is None:
                self._members.pop(uid, None)
                self._spread.discard(uid)
                continue
            self._members[uid] = self._stages[member.stage][uid] = member
            if member.pod.spec.topology_spread_constraints:
                self._spread.add(uid)


# Events.


class Seen(NamedTuple):
    """The pod is new, or has changed."""

    pod: Pod


class Left(NamedTuple):
    """The pod has a node, or is gone from the set."""

    uid: str
    gone: bool


class Recalled(NamedTuple):
    """The trigger means something else, or somebody has changed the plan. `in_flight` are UIDs."""

    in_flight: Collection[str]


class Reviewed(NamedTuple):
    """The pods that were recalled start over."""


class PlannedAgain(NamedTuple):
    """Plan these again: the pods that are barred, or the whole set."""

    whole: bool
    in_flight: Collection[str] = ()


class PlanStored(NamedTuple):
    """The plan for the pods of these UIDs is stored.

    `left_out` says why some of them have no node. `barred` is the reason for their conditions, if they may
    not look for a node by themselves.
    """

    uids: Collection[str]
    left_out: Mapping[str, str]
    barred: str = ""
    no_planner: bool = False


class FoundStored(NamedTuple):
    """The entries for pods that had found a node are stored; `waiting` are those that are still in Permit."""

    uids: Collection[str]
    waiting: Collection[str]


class Reserved(NamedTuple):
    """A node is reserved for the pod, which asks whether it may be bound."""

    uid: str
    node: str


class NotBound(NamedTuple):
    """The pod had this node and was not bound to it."""

    uid: str
    node: str


class Refuted(NamedTuple):
    """The planned node does not fit the pod."""

    uid: str
    node: str


_ByPod = Seen | Left | Reserved | NotBound | Refuted
Event = _ByPod | Recalled | Reviewed | PlannedAgain | PlanStored | FoundStored


class Do(Enum):
    """What to do about a pod: the first five at once and in this order, the others with the next look."""

    FREE_ROOM = "take back the room that is kept for the pod"
    REJECT = "reject the pod in Permit"
    HOLD = "take the pod out of the queue"
    KEEP_ROOM = "keep the room on the planned node for the pod"
    ALLOW = "allow the pod in Permit"
    ENTER = "let the pod into the queue, in the order of the plan"
    OPEN_GATE = "remove the pod's gate"
    INFORM = "write why the pod waits into its condition"


class Action(NamedTuple):
    do: Do
    member: Member


class Reaction(NamedTuple):
    """None: the pod is no member any more."""

    changed: dict[str, Member | None]
    actions: list[Action]


def react(members: Members, event: Event, facts: Facts) -> Reaction:
    step = _Step(members, facts)
    match event:
        case Seen(pod):
            step.seen(pod)
        case Left(uid, gone):
            step.left(uid, gone=gone)
        case Recalled(in_flight):
            step.recalled(in_flight)
        case Reviewed():
            for member in members.of(Stage.HELD):
                step.review(member)
        case PlannedAgain(whole, in_flight):
            step.planned_again(list(members) if whole else members.of(Stage.BARRED), in_flight)
        case PlanStored():
            step.planned(event)
        case FoundStored(uids, waiting):
            step.found_stored(uids, waiting)
        case Reserved(uid, node):
            step.reserved(uid, node)
        case NotBound(uid, node):
            step.not_bound(uid, node)
        case Refuted(uid, node):
            step.refuted(uid, node)
    return Reaction(step.changed, step.actions)


def observed(pods: Iterable[Pod], facts: Facts) -> Members:
    """The members as a scheduler that has just started sees them."""
    members = Members()
    for pod in pods:
        members.update(react(members, Seen(pod), facts).changed)
    return members


class _Step:
    def __init__(self, members: Members, facts: Facts) -> None:
        self._members = members
        self._facts = facts
        self.changed: dict[str, Member | None] = {}
        self.actions: list[Action] = []

    def move(self, member: Member, cause: Cause, **fields: Any) -> Member:
        if member.stage not in cause.stages:
            raise ValueError(f"pod {member.pod.key} is {member.stage.value}: {cause.meaning}")
        stage = cause.leads_to
        if stage is not Stage.FOUND:
            fields = {"why": None, "found": "", **fields}
        moved = replace(member, stage=stage, **fields)
        self.changed[member.uid] = moved
        self.actions += [Action(do, moved) for do in _follows(member, moved, cause)]
        return moved

    def seen(self, pod: Pod) -> None:
        old = self._members.get(pod.metadata.uid)
        member = Member(pod) if old is None else replace(old, pod=pod)
        self.changed[member.uid] = member
        if pod.spec.topology_spread_constraints and not self._members.are_spread:
            # They would look uneven: each pod is judged next to those promised to the same node, but not next
            # to those promised to others. So no room is kept for any of them.
            self.actions += [Action(Do.FREE_ROOM, each) for each in self._members]
        opened = old is not None and old.pod.spec.scheduling_gates and not pod.spec.scheduling_gates
        if member.stage in (Stage.HELD, Stage.GATED):
            self.review(member)
        elif opened and member.stage is Stage.PLANNED:
            self._go_by_entry(member)
        elif opened and member.stage is Stage.ALONE:
            self.actions.append(Action(Do.ENTER, member))
        elif member.stage is Stage.BARRED:
            self.actions.append(Action(Do.INFORM, member))

    def review(self, member: Member) -> None:
        """Find the stage of a pod that starts over."""
        if any(gate.name != GATE for gate in member.pod.spec.scheduling_gates):
            self.move(member, Cause.OTHER_GATE)
        elif not self._facts.released:
            self.move(member, Cause.SET_HELD, refused=frozenset())
        else:
            self._go_by_entry(member)

    def _go_by_entry(self, member: Member) -> None:
        if member.planned_node(self._facts.entries) is None:
            self.move(member, Cause.NO_ENTRY)
        else:
            self.move(member, Cause.GATED_ENTRY if member.pod.spec.scheduling_gates else Cause.ENTRY)

    def left(self, uid: str, *, gone: bool) -> None:
        member = self._members.get(uid)
        if member is None:
            return
        self.changed[uid] = None
        if gone:
            self.actions += [Action(Do.FREE_ROOM, member), Action(Do.HOLD, member)]
            if member.stage in IN_PERMIT:
                self.actions.append(Action(Do.REJECT, member))
        if not self._others_are_missing(member):
            self._let_all_go(member)

    def recalled(self, in_flight: Collection[str]) -> None:
        for member in self._members:
            late = member.uid in in_flight and member.stage in Cause.RECALLED_LATE.stages
            self.move(member, Cause.RECALLED_LATE if late else Cause.RECALLED)

    def planned_again(self, members: Iterable[Member], in_flight: Collection[str]) -> None:
        for member in members:
            under_way = member.stage is Stage.BINDING and member.uid in in_flight
            if member.stage in Cause.PLANNED_AGAIN.stages and not under_way:
                self.move(member, Cause.PLANNED_AGAIN)

    def planned(self, event: PlanStored) -> None:
        for uid in event.uids:
            member = self._members.get(uid)
            if member is None or member.stage is not Stage.UNPLANNED:
                continue
            message = event.left_out.get(uid)
            if event.no_planner:
                self.move(member, Cause.NO_PLANNER)
            elif message is not None:
                must_wait = event.barred or bool(member.pod.spec.scheduling_gates)
                self.move(
                    member,
                    Cause.BARRED if must_wait else Cause.LEFT_OUT,
                    why=Why(event.barred or REASON_UNSCHEDULABLE, message),
                    refused=frozenset(),
                )
            elif member.planned_node(self._facts.entries) is not None:
                # Else somebody has changed the plan since, and it is planned again.
                self._go_by_entry(member)

    def found_stored(self, uids: Collection[str], waiting: Collection[str]) -> None:
        for member in self._members.of(Stage.FOUND):
            if member.uid in uids and member.uid not in waiting:
                self.move(member, Cause.STORED_LATE)
            elif member.uid in uids and self._facts.entries.get(member.name) == member.found:
                # Else it has found another node since, and that is stored next.
                self.move(member, Cause.STORED)

    def reserved(self, uid: str, node: str) -> None:
        member = self._members.get(uid)
        if member is None:
            return
        if member.stage in Cause.FOUND.stages:
            self.move(member, Cause.FOUND, found=node)
        elif member.stage in Cause.ARRIVED.stages and member.planned_node(self._facts.entries) == node:
            if self._others_are_missing(member):
                self.move(member, Cause.ARRIVED_EARLY)
            else:
                self.move(member, Cause.ARRIVED)
                self._let_all_go(member)

    def not_bound(self, uid: str, node: str) -> None:
        member = self._members.get(uid)
        if member is None:
            return
        planned = self._facts.released and member.planned_node(self._facts.entries) == node
        if planned and member.stage in Cause.LOST.stages:
            self.move(member, Cause.LOST, failures=member.failures + 1)
        elif planned and member.stage in Cause.NOT_BOUND.stages:
            self.move(member, Cause.NOT_BOUND, failures=member.failures + 1)
        elif member.stage is Stage.BINDING:
            self.review(member)

    def refuted(self, uid: str, node: str) -> None:
        member = self._members.get(uid)
        if member is not None and member.stage in Cause.REFUTED.stages:
            self.move(member, Cause.REFUTED, refused=member.refused | {node}, failures=0)

    def _others_are_missing(self, member: Member) -> bool:
        missing = self._members.count(*MISSING) - (member.stage in MISSING)
        return self._facts.all_or_nothing and missing > 0

    def _let_all_go(self, but: Member) -> None:
        for member in self._members.of(Stage.GATHERED):
            if member is not but:
                self.move(member, Cause.ALL_ARRIVED)


def _follows(old: Member, new: Member, cause: Cause) -> Iterator[Do]:
    """What follows from a change of stage."""
    if cause in (Cause.NOT_BOUND, Cause.LOST):
        # The engine tries it again by itself, unless it has waited in Permit for too long.
        if old.stage is Stage.GATHERED:
            yield Do.ENTER
        return
    if not new.is_admitted and (old.is_admitted or cause is Cause.RECALLED):
        yield Do.FREE_ROOM
        if old.stage in IN_PERMIT:
            yield Do.REJECT
        yield Do.HOLD
    gated = bool(new.pod.spec.scheduling_gates)
    match new.stage:
        case Stage.HELD | Stage.BARRED:
            yield Do.INFORM
        case Stage.PLANNED | Stage.QUEUED:
            yield Do.KEEP_ROOM
            yield Do.OPEN_GATE if gated else Do.ENTER
        case Stage.ALONE | Stage.LEFT_OUT:
            yield Do.OPEN_GATE if gated else Do.ENTER
        case Stage.BINDING if old.stage in IN_PERMIT:
            yield Do.ALLOW
