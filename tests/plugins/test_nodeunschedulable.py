"""Cordoned nodes."""

from tests.plugins.one_plugin import rejections, wakes

from longshore.framework import Action, Resource, Status
from longshore.plugins import NodeUnschedulable
from longshore.plugins.nodeunschedulable import CORDONED, REASON
from longshore.testing import node, pod

PLUGIN = NodeUnschedulable()
TOLERANT = pod("a").tolerate(CORDONED.key, effect="NoSchedule")


def test_a_cordoned_node_takes_no_pods() -> None:
    refused = rejections(PLUGIN, pod("a"), node("n1").unschedulable(), node("n2"))
    assert refused == {"n1": Status.unresolvable(REASON)}


def test_a_pod_that_tolerates_the_taint_of_cordoned_nodes_may_use_them() -> None:
    assert rejections(PLUGIN, TOLERANT, node("n1").unschedulable()) == {}
    assert rejections(PLUGIN, pod("a").tolerate(), node("n1").unschedulable()) == {}


def test_tolerating_another_effect_is_not_enough() -> None:
    almost = pod("a").tolerate(CORDONED.key, effect="NoExecute")
    assert "n1" in rejections(PLUGIN, almost, node("n1").unschedulable())


def test_a_node_that_becomes_schedulable_wakes_the_pod() -> None:
    cordoned, free = node("n1").unschedulable(), node("n1")
    assert wakes(PLUGIN, pod("a"), Resource.NODE, Action.ADD, None, free)
    assert wakes(PLUGIN, pod("a"), Resource.NODE, Action.UPDATE_NODE_TAINT, cordoned, free)
    assert not wakes(PLUGIN, pod("a"), Resource.NODE, Action.ADD, None, cordoned)
    assert not wakes(PLUGIN, pod("a"), Resource.NODE, Action.UPDATE_NODE_TAINT, free, free)
    assert not wakes(PLUGIN, pod("a"), Resource.NODE, Action.UPDATE_NODE_LABEL, cordoned, free)


def test_a_new_toleration_wakes_the_pod_if_it_is_the_right_one_and_its_own() -> None:
    change = (Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
    assert wakes(PLUGIN, pod("a"), *change, pod("a"), TOLERANT)
    assert not wakes(PLUGIN, pod("a"), *change, pod("a"), pod("a").tolerate("other"))
    assert not wakes(PLUGIN, pod("b"), *change, pod("a"), TOLERANT)
