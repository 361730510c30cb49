"""The results of `react`: the stages of the members after an event, and the actions to take."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.podset.simulated_sets import member

from longshore.api import Pod
from longshore.podset.members import GATE, Facts, Member, Members
from longshore.podset.stages import ADMITTED, IN_PERMIT, MISSING, Stage
from longshore.podset.transitions import (
    Do,
    FoundStored,
    Left,
    MemberAction,
    MemberEvent,
    NotBound,
    PlannedAgain,
    PlanStored,
    Recalled,
    Refuted,
    Reserved,
    Reviewed,
    Seen,
    TriedAgain,
    observed,
    react,
)

A, B = "uid-default-a", "uid-default-b"


class Watched:
    """Members, and the events that reach them. `did` has the actions after the last event, by pod."""

    def __init__(
        self,
        *pods: Pod,
        released: bool = True,
        whole: bool = False,
        entries: Mapping[str, str] | None = None,
    ) -> None:
        self.facts = Facts(released, whole, entries or {})
        self.members = observed(pods, self.facts)
        self.did: list[tuple[Do, str]] = []

    def happens(self, *events: MemberEvent) -> "Watched":
        self.did = []
        for event in events:
            reaction = react(self.members, event, self.facts)
            self.members.update(reaction.changed)
            self.did += [(action.do, action.member.name) for action in reaction.actions]
        return self

    def stage(self, uid: str) -> Stage:
        return self.member(uid).stage

    def member(self, uid: str) -> Member:
        found = self.members.get(uid)
        assert found is not None
        return found


PLANNED = {"a": "n1", "b": "n2"}


@pytest.mark.parametrize(
    ("pod", "released", "entries", "stage"),
    [
        (member("a"), False, {}, Stage.HELD),
        (member("a"), False, {"a": "n1"}, Stage.HELD),
        (member("a"), True, {}, Stage.UNPLANNED),
        (member("a"), True, {"a": "n1"}, Stage.QUEUED),
        (member("a").gates(GATE), True, {"a": "n1"}, Stage.PLANNED),
        (member("a").gates(GATE), True, {}, Stage.UNPLANNED),
        (member("a").gates(GATE, "example.com/quota"), True, {"a": "n1"}, Stage.GATED),
        (member("a").gates("example.com/quota"), False, {}, Stage.GATED),
    ],
)
def test_a_new_pod(pod: Pod, released: bool, entries: Mapping[str, str], stage: Stage) -> None:
    assert Watched(pod, released=released, entries=entries).stage(A) is stage


def test_a_refused_node_is_no_entry_any_more() -> None:
    seen = Watched(member("a"), entries=PLANNED).happens(Refuted(A, "n1"))
    assert seen.stage(A) is Stage.UNPLANNED
    assert seen.member(A).planned_node(PLANNED) is None
    assert seen.did == [(Do.FREE_ROOM, "a"), (Do.HOLD, "a")]
    successor = Watched(member("a").uid("second"), entries=PLANNED)
    assert successor.member("second").planned_node(PLANNED) == "n1"


def test_the_first_pods_of_an_all_or_nothing_set_wait_for_the_last() -> None:
    seen = Watched(member("a"), member("b"), whole=True, entries=PLANNED)
    assert seen.happens(Reserved(A, "n1")).did == []
    assert seen.stage(A) is Stage.GATHERED
    assert seen.happens(Reserved(B, "n2")).did == [(Do.ALLOW, "a")]
    assert (seen.stage(A), seen.stage(B)) == (Stage.BINDING, Stage.BINDING)


def test_when_the_last_missing_pod_goes_the_others_are_allowed() -> None:
    seen = Watched(member("a"), member("b"), whole=True, entries=PLANNED)
    seen.happens(Reserved(A, "n1"), Left(B, gone=True))
    assert (Do.ALLOW, "a") in seen.did
    assert seen.members.get(B) is None


def test_a_gathered_pod_that_loses_its_node_is_missing_again() -> None:
    seen = Watched(member("a"), member("b"), whole=True, entries=PLANNED)
    seen.happens(Reserved(A, "n1"), NotBound(A, "n1"))
    assert seen.did == [(Do.ENTER, "a")]
    seen.happens(Reserved(B, "n2"))
    assert (seen.stage(A), seen.stage(B)) == (Stage.QUEUED, Stage.GATHERED)


def test_a_pod_that_was_recalled_during_its_attempt_may_not_be_bound() -> None:
    seen = Watched(member("a"), entries=PLANNED).happens(Recalled(()), Reserved(A, "n1"))
    assert seen.stage(A) is Stage.HELD


def test_a_pod_whose_bind_is_under_way_is_not_recalled() -> None:
    seen = Watched(member("a"), entries=PLANNED).happens(Reserved(A, "n1"), Recalled({A}))
    assert seen.stage(A) is Stage.BINDING
    assert seen.did == []


def test_a_pod_that_is_held_when_its_bind_fails_is_held_too() -> None:
    seen = Watched(member("a"), entries=PLANNED).happens(Reserved(A, "n1"), Recalled({A}))
    seen.facts = Facts(released=False, all_or_nothing=False, entries=PLANNED)
    # It keeps its room until its next attempt: only the answer may have been lost.
    assert seen.happens(NotBound(A, "n1")).stage(A) is Stage.BINDING
    assert seen.happens(TriedAgain(A)).stage(A) is Stage.HELD
    assert (Do.INFORM, "a") in seen.did


def test_a_pod_that_lost_its_entry_when_its_bind_failed_is_planned_again() -> None:
    seen = Watched(member("a"), entries=PLANNED).happens(Reserved(A, "n1"), Recalled({A}))
    seen.facts = seen.facts._replace(entries={})
    assert seen.happens(NotBound(A, "n1")).stage(A) is Stage.BINDING
    assert seen.happens(TriedAgain(A)).stage(A) is Stage.UNPLANNED


def test_pods_in_permit_are_rejected_when_they_are_recalled() -> None:
    seen = Watched(member("a"), member("b"), whole=True, entries=PLANNED)
    seen.happens(Reserved(A, "n1"), Recalled(()))
    assert [name for do, name in seen.did if do is Do.REJECT] == ["a"]


def test_a_pod_that_found_another_node_meanwhile_is_not_allowed_yet() -> None:
    seen = Watched(member("a")).happens(PlanStored([A], {A: "no room"}))
    assert seen.stage(A) is Stage.LEFT_OUT
    seen.happens(Reserved(A, "n1"), Reserved(A, "n3"))
    seen.facts = seen.facts._replace(entries={"a": "n1"})
    assert seen.happens(FoundStored({A}, waiting={A})).stage(A) is Stage.FOUND
    seen.facts = seen.facts._replace(entries={"a": "n3"})
    assert seen.happens(FoundStored({A}, waiting={A})).did == [(Do.ALLOW, "a")]


def test_a_pod_with_a_gate_that_is_left_out_waits() -> None:
    seen = Watched(member("a").gates(GATE)).happens(PlanStored([A], {A: "no room"}))
    assert seen.stage(A) is Stage.BARRED
    assert seen.member(A).why == ("Unschedulable", "no room")


def test_if_one_pod_is_spread_no_room_is_kept_for_the_others() -> None:
    seen = Watched(member("a"), entries=PLANNED)
    assert not seen.members.are_spread
    seen.happens(Seen(member("b").spread("zone")))
    assert (Do.FREE_ROOM, "a") in seen.did
    assert seen.members.are_spread
    assert not seen.happens(Left(B, gone=True)).members.are_spread


NAMES = st.sampled_from("abc")
NODES = st.sampled_from(["n1", "n2"])
GATES = st.sampled_from(["", "", "", GATE, "example.com/quota"])
OFTEN = st.sampled_from([True, True, True, False])


class History(RuleBasedStateMachine):
    """Any events in any order, except for those that neither an engine nor a user would cause."""

    def __init__(self) -> None:
        super().__init__()
        self.members = Members()
        self.facts = Facts(released=False, all_or_nothing=False, entries={})
        # The pods that wait on Permit in the engine.
        self.in_permit: set[str] = set()

    def happens(self, event: MemberEvent) -> list[MemberAction]:
        before = {each.uid: each for each in self.members}
        reaction = react(self.members, event, self.facts)
        # The function is pure: only the returned members differ.
        assert {each.uid: each for each in self.members} == before
        self.members.update(reaction.changed)
        for do, each in reaction.actions:
            assert do is not Do.ALLOW or each.uid in self.in_permit
            if do in (Do.ALLOW, Do.REJECT):
                self.in_permit.discard(each.uid)
        return reaction.actions

    def recall(self, in_flight: Iterable[str] = ()) -> None:
        self.happens(Recalled(frozenset(in_flight)))
        assert not self.members.count(*IN_PERMIT)
        self.happens(Reviewed())

    @initialize(gates=st.lists(GATES, min_size=3, max_size=3), whole=st.booleans())
    def released(self, gates: list[str], whole: bool) -> None:
        for name, gate in zip("abc", gates, strict=True):
            self.comes(name, gate)
        self.trigger_changes(True, whole)

    @rule(name=NAMES, gate=GATES)
    def comes(self, name: str, gate: str) -> None:
        if self.members.get(f"uid-default-{name}") is None:
            self.happens(Seen(member(name).gates(gate) if gate else member(name)))

    @rule(name=NAMES)
    def loses_its_gates(self, name: str) -> None:
        if self.members.get(f"uid-default-{name}") is not None:
            self.happens(Seen(member(name)))

    @rule(kind=st.sampled_from(["pod", "trigger", "entry"]), data=st.data())
    def is_disturbed(self, kind: str, data: st.DataObject) -> None:
        match kind:
            case "pod":
                self.leaves(data.draw(NAMES), data.draw(st.booleans()))
            case "trigger":
                self.trigger_changes(data.draw(OFTEN), data.draw(st.booleans()))
            case "entry":
                self.somebody_writes_an_entry(data.draw(NAMES), data.draw(NODES))

    def leaves(self, name: str, gone: bool) -> None:
        self.happens(Left(f"uid-default-{name}", gone))
        self.in_permit.discard(f"uid-default-{name}")
        assert self.members.get(f"uid-default-{name}") is None

    def trigger_changes(self, released: bool, whole: bool) -> None:
        self.facts = Facts(released, whole, self.facts.entries)
        self.recall()
        if not released:
            assert self.members.count(Stage.HELD, Stage.GATED) == len(self.members)

    def somebody_writes_an_entry(self, name: str, node: str) -> None:
        self.facts = self.facts._replace(entries={**self.facts.entries, name: node})
        going = self.members.of(Stage.BINDING)
        self.recall(each.uid for each in going)
        assert {each.uid for each in going} <= {each.uid for each in self.members.of(Stage.BINDING)}

    @precondition(lambda self: self.members.count(Stage.UNPLANNED))
    @rule(fitting=st.sets(NAMES), barred=st.booleans(), alone=OFTEN.map(lambda often: not often))
    def planned(self, fitting: set[str], barred: bool, alone: bool) -> None:
        if self.facts.all_or_nothing:
            self.happens(PlannedAgain(whole=True))
        members = self.members.of(Stage.UNPLANNED)
        goes = [each for each in members if each.name in fitting]
        if self.facts.all_or_nothing and len(goes) < len(members):
            goes = []
        more = {each.name: "n2" if "n1" in each.refused else "n1" for each in goes}
        self.facts = self.facts._replace(entries={**self.facts.entries, **more})
        left_out = {each.uid: "no room" for each in members if each not in goes}
        reason = "Unschedulable" if barred or self.facts.all_or_nothing else ""
        no_planner = alone and not self.facts.all_or_nothing
        self.happens(PlanStored([each.uid for each in members], left_out, reason, no_planner))
        unplanned = {each.name for each in self.members.of(Stage.UNPLANNED)}
        assert unplanned <= {each.name for each in goes if each.refused}

    @precondition(lambda self: self.members.count(Stage.BARRED))
    @rule()
    def planned_again(self) -> None:
        self.happens(PlannedAgain(whole=False))
        assert not self.members.count(Stage.BARRED)

    @precondition(lambda self: self.members.count(*ADMITTED))
    @rule(data=st.data(), node=NODES)
    def gets_a_node(self, data: st.DataObject, node: str) -> None:
        found = data.draw(st.sampled_from(self.members.of(*ADMITTED)))
        uid = found.uid
        if uid in self.in_permit:
            return
        if found.stage is not Stage.FOUND:
            node = found.planned_node(self.facts.entries) or node
        self.in_permit.add(uid)
        allowed = {each.uid for do, each in self.happens(Reserved(uid, node)) if do is Do.ALLOW}
        after = self.members.get(uid)
        assert after is not None
        if after.stage not in IN_PERMIT:
            self.in_permit.discard(uid)
        if allowed or (after.stage is Stage.BINDING and self.facts.all_or_nothing):
            assert not self.members.count(*MISSING)

    @rule(name=NAMES, node=NODES)
    def does_not_get_bound(self, name: str, node: str) -> None:
        uid = f"uid-default-{name}"
        found = self.members.get(uid)
        self.in_permit.discard(uid)
        self.happens(NotBound(uid, found.planned_node(self.facts.entries) or node if found else node))

    @rule(name=NAMES)
    def is_tried_again(self, name: str) -> None:
        uid = f"uid-default-{name}"
        if uid not in self.in_permit:
            self.happens(TriedAgain(uid))

    @rule(name=NAMES, node=NODES)
    def does_not_fit(self, name: str, node: str) -> None:
        uid = f"uid-default-{name}"
        if uid not in self.in_permit:
            self.happens(Refuted(uid, node))

    @precondition(lambda self: self.members.count(Stage.FOUND))
    @rule()
    def entries_of_found_nodes_are_stored(self) -> None:
        found = self.members.of(Stage.FOUND)
        entries = {**self.facts.entries, **{each.name: each.found for each in found}}
        self.facts = self.facts._replace(entries=entries)
        self.happens(FoundStored({each.uid for each in found}, frozenset(self.in_permit)))
        assert not self.members.count(Stage.FOUND)

    @invariant()
    def every_pod_is_in_exactly_one_stage(self) -> None:
        staged = [each.uid for each in self.members.of(*Stage)]
        assert sorted(staged) == sorted(each.uid for each in self.members)
        assert all(each in self.members.of(each.stage) for each in self.members)

    @invariant()
    def a_pod_that_waits_in_permit_is_known_to_wait(self) -> None:
        assert self.in_permit <= {each.uid for each in self.members.of(*IN_PERMIT)}

    @invariant()
    def what_a_stage_says_about_a_pod_is_so(self) -> None:
        entries = self.facts.entries
        for each in self.members:
            if each.stage in (Stage.QUEUED, Stage.PLANNED, Stage.GATHERED):
                assert each.planned_node(entries) is not None
            if each.stage in (Stage.LEFT_OUT, Stage.BARRED):
                assert each.why is not None
            if each.stage in ADMITTED and each.stage not in (Stage.ALONE, Stage.BINDING):
                assert not each.pod.spec.scheduling_gates


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
