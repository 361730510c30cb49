"""Stored entries, from any writer, keep room for their pods until these are tried."""

import pytest
from msgspec.structs import replace
from tests.podset.simulated_sets import WORKERS, Sets, member, plan_by_hand, trigger, worker

from longshore.api import Pod
from longshore.api.pod_set import PLANNING, SCHEDULE
from longshore.podset.members import GATE
from longshore.testing import pod

HOSTNAME = "kubernetes.io/hostname"


def test_room_for_a_manual_entry_is_not_given_to_another_pod() -> None:
    sets = Sets(worker("n1"), worker("n2", cpu="2"), trigger(), member("a", cpu="3"), member("b", cpu="2"))
    sets.add(plan_by_hand({"a": "n1"}))
    sets.release()
    sets.after(5.0)
    assert sets.nodes() == sets.entries() == {"a": "n1", "b": "n2"}


def test_the_room_of_an_entry_is_kept_while_the_gate_of_its_pod_is_removed() -> None:
    sets = Sets(worker("n1"), worker("n2", cpu="2"), trigger(), write_latency=0.5)
    sets.add(member("a", cpu="3").gates(GATE), member("b", cpu="2"), plan_by_hand({"a": "n1"}))
    sets.release()
    sets.after(5.0)
    assert sets.nodes() == sets.entries() == {"a": "n1", "b": "n2"}


@pytest.mark.parametrize("seed", range(4))
def test_the_stored_plan_of_another_set_holds_after_a_restart(seed: int) -> None:
    sets = Sets(worker("n1"), worker("n2", cpu="2"), trigger(), trigger("other", podset="other"))
    sets.add(member("b", cpu="2"), member("a", podset="other", cpu="3"))
    sets.add(plan_by_hand({"a": "n1"}, podset="other"))
    for each in (sets.trigger(), sets.trigger("other")):
        sets.cluster.server.put(replace(each, spec=replace(each.spec, state=SCHEDULE)))
    sets.start_again(seed)
    sets.after(5.0)
    assert sets.nodes() == {"a": "n1", "b": "n2"}
    assert sets.entries("other") == {"a": "n1"}


def test_a_late_pod_does_not_move_others_whose_entries_are_not_bound_yet() -> None:
    sets = Sets(worker("n1"), worker("n2", cpu="2"), trigger(), member("a", cpu="3"))
    sets.add(plan_by_hand({"a": "n1"}))
    # Both are known at the same moment.
    old = sets.trigger()
    sets.create(replace(old, spec=replace(old.spec, state=SCHEDULE)), member("late", cpu="2"))
    sets.after(5.0)
    assert sets.nodes() == sets.entries() == {"a": "n1", "late": "n2"}


def gated(*others: Pod) -> Sets:
    """Room for 3 cpu is kept on a node of 4 while the gate of its pod is being taken away."""
    sets = Sets(worker("n1"), trigger(), *others, member("a", cpu="3").gates(GATE), write_latency=1.0)
    sets.add(plan_by_hand({"a": "n1"}))
    sets.release()
    return sets


def test_a_set_held_again_keeps_no_room() -> None:
    sets = gated()
    sets.add(pod("free").requests(cpu="2"))
    sets.after(0.1)
    assert sets.node_of("free") == ""
    sets.set_state(PLANNING)
    sets.after(0.1)
    assert sets.node_of("free") == "n1"


@pytest.mark.parametrize("kind", ["pod", "set"])
def test_others_get_the_room_of_an_entry_that_does_not_fit(kind: str) -> None:
    sets = gated(pod("load").requests(cpu="2").on("n1"))
    sets.add(trigger("whole", podset="whole", state=SCHEDULE, all_or_nothing=True))
    sets.add(pod("x").requests(cpu="1") if kind == "pod" else member("x", podset="whole"))
    sets.after(0.5)
    assert sets.node_of("x") == ""
    sets.after(10.0)
    assert sets.nodes() == {"load": "n1", "x": "n1", "a": ""}


def test_pods_that_are_to_be_spread_are_not_refused_over_room_that_is_kept() -> None:
    sets = Sets(*WORKERS, trigger())
    nodes = ["n1", "n2", "n3"]
    for number in range(9):
        built = member(f"p{number}", cpu="100m").labels(app="web")
        sets.add(built if number % 2 else built.spread(HOSTNAME, app="web"))
    by_hand = {f"p{number}": nodes[number % 3] for number in range(9)}
    sets.add(plan_by_hand(by_hand))
    sets.release()
    sets.after(5.0)
    assert sets.nodes() == sets.entries() == by_hand
