"""Scheduling gates keep a pod out of the queue."""

from tests.plugins.one_plugin import wakes

from longshore.framework import Action, Resource, Status
from longshore.plugins import SchedulingGates
from longshore.plugins.schedulinggates import REASON
from longshore.testing import pod

GATES = SchedulingGates()


def test_a_pod_without_gates_enters_the_queue() -> None:
    assert GATES.pre_enqueue(pod("a")) is None


def test_a_pod_is_held_by_any_gate_and_all_are_named() -> None:
    held = Status.unresolvable(REASON.format(gates="quota network"))
    assert GATES.pre_enqueue(pod("a").gates("quota", "network")) == held
    assert held.message == "waiting for scheduling gates: [quota network]"


def test_removing_the_last_gate_wakes_only_the_pod_itself() -> None:
    gone = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    a, b = pod("a"), pod("b")
    assert wakes(GATES, a, Resource.UNSCHEDULED_POD, gone, a.gates("x"), a)
    assert not wakes(GATES, a, Resource.UNSCHEDULED_POD, gone, b.gates("x"), b)
    assert not wakes(GATES, a, Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL, a, a)
