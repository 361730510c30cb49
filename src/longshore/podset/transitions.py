"""The events of a set's members, and what follows from them.

`react` is a pure function: it takes the members and an event, and returns the members that have changed and
the actions to take.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec.structs import replace

from longshore.api import Pod
from longshore.engine.cycle.reporting import REASON_UNSCHEDULABLE
from longshore.podset.members import GATE, Facts, Member, Members, Why
from longshore.podset.stages import IN_PERMIT, MISSING, Stage, Transition


class Do(Enum):
    """An action for a pod. The first five are taken at once in this order, the others at the next look."""

    FREE_ROOM = "take back the room that is kept for the pod"
    REJECT = "reject the pod in Permit"
    HOLD = "take the pod out of the queue"
    KEEP_ROOM = "keep the room on the planned node for the pod"
    ALLOW = "allow the pod in Permit"
    ENTER = "let the pod into the queue, in the order of the plan"
    OPEN_GATE = "remove the pod's gate"
    INFORM = "write why the pod waits into its condition"


class MemberAction(NamedTuple):
    do: Do
    member: Member


class Reaction:
    """The result of an event. `changed` is by UID; None means that the pod is no longer a member."""

    def __init__(self, members: Members, facts: Facts) -> None:
        self.members = members
        self.facts = facts
        self.changed: dict[str, Member | None] = {}
        self.actions: list[MemberAction] = []

    def move(self, member: Member, cause: Transition, **fields: Any) -> None:
        if member.stage not in cause.stages:
            raise ValueError(f"pod {member.pod.key} is {member.stage.value}: {cause.meaning}")
        if cause.leads_to is not Stage.FOUND:
            fields = {"why": None, "found": "", **fields}
        moved = replace(member, stage=cause.leads_to, **fields)
        self.changed[member.uid] = moved
        self.actions += [MemberAction(do, moved) for do in _follows(member, moved, cause)]

    def review(self, member: Member) -> None:
        """Find the stage of a pod that starts over."""
        if any(gate.name != GATE for gate in member.pod.spec.scheduling_gates):
            self.move(member, Transition.OTHER_GATE)
        elif not self.facts.released:
            self.move(member, Transition.SET_HELD, refused=frozenset())
        else:
            self.go_by_entry(member)

    def go_by_entry(self, member: Member) -> None:
        if member.planned_node(self.facts.entries) is None:
            self.move(member, Transition.NO_ENTRY)
        else:
            self.move(
                member, Transition.GATED_ENTRY if member.pod.spec.scheduling_gates else Transition.ENTRY
            )

    def others_are_missing(self, member: Member) -> bool:
        missing = self.members.count(*MISSING) - (member.stage in MISSING)
        return self.facts.all_or_nothing and missing > 0

    def let_others_go(self, member: Member) -> None:
        for other in self.members.of(Stage.GATHERED):
            if other is not member:
                self.move(other, Transition.ALL_ARRIVED)


class Seen(NamedTuple):
    """The pod is new, or has changed."""

    pod: Pod

    def happens(self, to: Reaction) -> None:
        pod, old = self.pod, to.members.get(self.pod.metadata.uid)
        member = Member(pod) if old is None else replace(old, pod=pod)
        to.changed[member.uid] = member
        if pod.spec.topology_spread_constraints and not to.members.are_spread:
            # They would look uneven: each pod is judged next to those promised to the same node, but not next
            # to those promised to others. So no room is kept for any of them.
            to.actions += [MemberAction(Do.FREE_ROOM, each) for each in to.members]
        opened = old is not None and old.pod.spec.scheduling_gates and not pod.spec.scheduling_gates
        if member.stage in (Stage.HELD, Stage.GATED):
            to.review(member)
        elif opened and member.stage is Stage.PLANNED:
            to.go_by_entry(member)
        elif opened and member.stage is Stage.ALONE:
            to.actions.append(MemberAction(Do.ENTER, member))
        elif member.stage is Stage.BARRED:
            to.actions.append(MemberAction(Do.INFORM, member))


class Left(NamedTuple):
    """The pod has a node, or is gone from the set."""

    uid: str
    gone: bool

    def happens(self, to: Reaction) -> None:
        if (member := to.members.get(self.uid)) is None:
            return
        to.changed[self.uid] = None
        if self.gone:
            to.actions += [MemberAction(Do.FREE_ROOM, member), MemberAction(Do.HOLD, member)]
            if member.stage in IN_PERMIT:
                to.actions.append(MemberAction(Do.REJECT, member))
        if not to.others_are_missing(member):
            to.let_others_go(member)


class Recalled(NamedTuple):
    """The trigger has a new meaning, or another client has changed the plan. `in_flight` are UIDs."""

    in_flight: Collection[str]

    def happens(self, to: Reaction) -> None:
        for member in to.members:
            late = member.uid in self.in_flight and member.stage in Transition.RECALLED_LATE.stages
            to.move(member, Transition.RECALLED_LATE if late else Transition.RECALLED)


class Reviewed(NamedTuple):
    """The pods that were recalled start over."""

    def happens(self, to: Reaction) -> None:
        for member in to.members.of(Stage.HELD):
            to.review(member)


class PlannedAgain(NamedTuple):
    """These pods are planned again: the barred ones, or the whole set except pods that are being bound."""

    whole: bool
    in_flight: Collection[str] = ()

    def happens(self, to: Reaction) -> None:
        for member in to.members.of(*Stage) if self.whole else to.members.of(Stage.BARRED):
            under_way = member.stage is Stage.BINDING and member.uid in self.in_flight
            if member.stage in Transition.PLANNED_AGAIN.stages and not under_way:
                to.move(member, Transition.PLANNED_AGAIN)


class PlanStored(NamedTuple):
    """The plan for the pods of these UIDs is stored.

    `left_out` says why some of them have no node. `barred` is the reason for their conditions, if they may
    not look for a node by themselves.
    """

    uids: Collection[str]
    left_out: Mapping[str, str]
    barred: str = ""
    no_planner: bool = False

    def happens(self, to: Reaction) -> None:
        for uid in self.uids:
            member, message = to.members.get(uid), self.left_out.get(uid)
            if member is None or member.stage is not Stage.UNPLANNED:
                continue
            if self.no_planner:
                to.move(member, Transition.NO_PLANNER)
            elif message is not None:
                must_wait = self.barred or member.pod.spec.scheduling_gates
                cause = Transition.BARRED if must_wait else Transition.LEFT_OUT
                why = Why(self.barred or REASON_UNSCHEDULABLE, message)
                to.move(member, cause, why=why, refused=frozenset())
            elif member.planned_node(to.facts.entries) is not None:
                # Otherwise another client has changed the plan, and the pod is planned again.
                to.go_by_entry(member)


class FoundStored(NamedTuple):
    """The entries for pods that had found a node are stored; `waiting` are those that are still in Permit."""

    uids: Collection[str]
    waiting: Collection[str]

    def happens(self, to: Reaction) -> None:
        for member in to.members.of(Stage.FOUND):
            if member.uid in self.uids and member.uid not in self.waiting:
                to.move(member, Transition.STORED_LATE)
            elif member.uid in self.uids and to.facts.entries.get(member.name) == member.found:
                # Otherwise it has found another node meanwhile, and that is stored next.
                to.move(member, Transition.STORED)


class Reserved(NamedTuple):
    """A node is reserved for the pod, which asks whether it may be bound."""

    uid: str
    node: str

    def happens(self, to: Reaction) -> None:
        if (member := to.members.get(self.uid)) is None:
            return
        if member.stage in Transition.FOUND.stages:
            to.move(member, Transition.FOUND, found=self.node)
        elif member.stage in Transition.ARRIVED.stages and member.planned_node(to.facts.entries) == self.node:
            if to.others_are_missing(member):
                to.move(member, Transition.ARRIVED_EARLY)
            else:
                to.move(member, Transition.ARRIVED)
                to.let_others_go(member)


class NotBound(NamedTuple):
    """The pod had this node and was not bound to it."""

    uid: str
    node: str

    def happens(self, to: Reaction) -> None:
        if (member := to.members.get(self.uid)) is None:
            return
        cause = Transition.NOT_BOUND if member.stage is Stage.BINDING else Transition.LOST
        planned = to.facts.released and member.planned_node(to.facts.entries) == self.node
        if planned and member.stage in cause.stages:
            to.move(member, cause, failures=member.failures + 1)


class TriedAgain(NamedTuple):
    """An attempt begins. Until now the pod has kept its room, because only the answer may have been lost."""

    uid: str

    def happens(self, to: Reaction) -> None:
        member = to.members.get(self.uid)
        if member is None or member.stage is not Stage.BINDING:
            return
        if not to.facts.released or member.planned_node(to.facts.entries) is None:
            to.review(member)


class Refuted(NamedTuple):
    """The planned node does not fit the pod."""

    uid: str
    node: str

    def happens(self, to: Reaction) -> None:
        member = to.members.get(self.uid)
        if member is not None and member.stage in Transition.REFUTED.stages:
            to.move(member, Transition.REFUTED, refused=member.refused | {self.node}, failures=0)


_OfOne = Seen | Left | Reserved | NotBound | TriedAgain | Refuted
MemberEvent = _OfOne | Recalled | Reviewed | PlannedAgain | PlanStored | FoundStored


def react(members: Members, event: MemberEvent, facts: Facts) -> Reaction:
    """Return the result of the event. The members themselves are not changed."""
    reaction = Reaction(members, facts)
    event.happens(reaction)
    return reaction


def observed(pods: Iterable[Pod], facts: Facts) -> Members:
    """Return the members as a scheduler that has just started sees them."""
    members = Members()
    for pod in pods:
        members.update(react(members, Seen(pod), facts).changed)
    return members


def _follows(old: Member, new: Member, cause: Transition) -> Iterator[Do]:
    """Return the actions that follow from a change of stage."""
    if cause in (Transition.NOT_BOUND, Transition.LOST):
        # The engine tries it again by itself, unless it has waited in Permit for too long.
        if old.stage is Stage.GATHERED:
            yield Do.ENTER
        return
    if not new.is_admitted and (old.is_admitted or cause is Transition.RECALLED):
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
