"""Pods with the scheduling gate of Longshore are held by the API server until they are planned."""

import pytest
from tests.podset.simulated_sets import WORKERS, Sets, member, plan_by_hand, trigger, worker

from longshore.api import Pod
from longshore.api.pod_set import PLANNING, SCHEDULE
from longshore.framework.effects import Bind, PatchObject, SetCondition
from longshore.podset.members import GATE
from longshore.sim import Faults
from longshore.testing import PodBuilder


def gated(name: str, **more: str) -> PodBuilder:
    return member(name, **more).gates(GATE)


THREE = (gated("a"), gated("b"), gated("c"))


def gate_writes(sets: Sets) -> list[PatchObject]:
    return [each for each in sets.asked_for(PatchObject) if each.kind is Pod]


def test_while_the_set_is_held_nothing_is_written_to_its_pods() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE)
    sets.after(600.0)
    assert gate_writes(sets) == []
    # The API server sets the condition that says what they wait for.
    assert sets.asked_for(SetCondition) == []


def test_gates_are_removed_when_the_plan_is_stored_and_not_before() -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, write_latency=0.1)
    sets.after(5.0)
    sets.release()
    sets.after(0.05)
    assert gate_writes(sets) == []
    sets.after(0.1)
    assert len(sets.entries()) == len(gate_writes(sets)) == 3
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert len(sets.plan_writes()) == 1


def test_the_gates_of_a_set_are_removed_at_the_same_time() -> None:
    sets = Sets(*WORKERS, trigger(), *(gated(f"p{n}", cpu="50m") for n in range(100)), write_latency=0.1)
    sets.release()
    # One write for the plan and one for each gate, then the binds.
    sets.after(0.25)
    assert all(sets.nodes().values())


@pytest.mark.parametrize("kind", ["failed", "lost"])
def test_a_gate_that_could_not_be_removed_is_removed_later(kind: str) -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, write_faults=Faults(**{kind: 0.8}, until=10.0), seed=5)
    sets.release()
    sets.after(15.0)
    assert sets.entries() == sets.nodes()


@pytest.mark.parametrize("seed", range(4))
def test_gates_that_are_left_when_the_scheduler_is_killed_are_removed_by_the_next(seed: int) -> None:
    sets = Sets(*WORKERS, trigger(), *THREE, write_latency=0.1)
    sets.release()
    # The write of the plan is unanswered, and no gate is removed.
    sets.after(0.05)
    sets.start_again(seed)
    sets.after(2.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_gate_that_could_not_be_removed_stays_when_the_set_is_held_again() -> None:
    sets = Sets(*WORKERS, trigger(), gated("a"), write_latency=0.5)
    sets.release()
    sets.after(0.7)
    assert len(gate_writes(sets)) == 1
    sets.break_writes(Faults(failed=1.0, until=sets.now + 0.5))
    sets.set_state(PLANNING)
    sets.after(60.0)
    assert [each.name for each in sets.pod("a").spec.scheduling_gates] == [GATE]


def test_a_gated_pod_with_an_entry_by_hand_is_opened_without_being_planned() -> None:
    sets = Sets(*WORKERS, plan_by_hand({"a": "n3"}), trigger(state=SCHEDULE), gated("a"))
    sets.after(1.0)
    assert sets.nodes() == {"a": "n3"}


def test_pods_with_other_gates_are_left_alone_and_not_planned() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), member("a"), member("b").gates(GATE, "example.com/quota"))
    sets.after(60.0)
    assert sets.entries().keys() == {"a"}
    assert gate_writes(sets) == []
    # Only the gate of Longshore is left.
    sets.add(gated("b"))
    sets.after(1.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())


def test_a_gated_pod_that_is_left_out_keeps_its_gate_until_there_is_a_node() -> None:
    sets = Sets(*WORKERS, trigger(state=SCHEDULE), gated("a"), gated("big", cpu="8"))
    sets.after(60.0)
    assert sets.entries().keys() == {"a"}
    assert [each.name for each in sets.pod("big").spec.scheduling_gates] == [GATE]
    assert [each.pod for each in sets.stored_plan().status.unplaced] == ["big"]
    sets.add(worker("huge", cpu="16"))
    sets.after(3.0)
    assert sets.node_of("big") == sets.entries()["big"] == "huge"


def test_a_set_that_goes_as_a_whole_waits_until_the_last_gate_is_open() -> None:
    faults = Faults(failed=0.6, until=20.0)
    whole = trigger(all_or_nothing=True)
    sets = Sets(*WORKERS, whole, *(gated(f"p{n}") for n in range(6)), write_faults=faults, seed=2)
    sets.release()
    while any(pod.spec.scheduling_gates for pod in sets.cluster.pods.values()):
        assert sets.asked_for(Bind) == []
        sets.after(0.25)
        assert sets.now < 60.0
    sets.after(5.0)
    assert sets.entries() == sets.nodes()
    assert all(sets.nodes().values())
