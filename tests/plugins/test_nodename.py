"""Pods that name their node."""

from tests.plugins.one_plugin import concerned, rejections, wakes

from longshore.framework import Action, Resource, Status
from longshore.plugins import NodeName
from longshore.plugins.nodename import REASON
from longshore.testing import node, pod

PLUGIN = NodeName()


def test_a_pod_that_names_no_node_may_go_anywhere() -> None:
    assert not concerned(PLUGIN, pod("a"))


def test_only_the_named_node_is_feasible() -> None:
    refused = rejections(PLUGIN, pod("a").on("n2"), node("n1"), node("n2"))
    assert refused == {"n1": Status.unresolvable(REASON)}


def test_no_node_is_feasible_when_the_named_one_is_unknown() -> None:
    assert set(rejections(PLUGIN, pod("a").on("n3"), node("n1"), node("n2"))) == {"n1", "n2"}


def test_a_new_node_wakes_the_pod_and_a_changed_one_does_not() -> None:
    assert wakes(PLUGIN, pod("a"), Resource.NODE, Action.ADD, None, node("n3"))
    assert not wakes(PLUGIN, pod("a"), Resource.NODE, Action.UPDATE_NODE_LABEL, node("n3"), node("n3"))
