"""Taints and what pods tolerate of them."""

import pytest
from tests.plugins.one_plugin import rejections, scores, wakes

from longshore.framework import Action, Resource, Status
from longshore.plugins import TaintToleration
from longshore.plugins.tainttoleration import REASON
from longshore.testing import node, pod

PLUGIN = TaintToleration()
CLEAN = node("clean")
TAINTED = node("tainted").taint("team", "blue")


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_that_is_not_tolerated_rules_the_node_out(effect: str) -> None:
    refused = rejections(PLUGIN, pod("a"), CLEAN, node("n1").taint("team", "blue", effect=effect))
    assert refused == {"n1": Status.unresolvable(REASON)}


def test_a_taint_that_only_advises_against_the_node_does_not() -> None:
    assert rejections(PLUGIN, pod("a"), node("n1").taint("team", effect="PreferNoSchedule")) == {}


def test_a_taint_is_tolerated_by_value_by_key_or_along_with_all_others() -> None:
    for tolerant in (pod("a").tolerate("team", "blue"), pod("a").tolerate("team"), pod("a").tolerate()):
        assert rejections(PLUGIN, tolerant, TAINTED) == {}
    assert "tainted" in rejections(PLUGIN, pod("a").tolerate("team", "red"), TAINTED)
    assert "tainted" in rejections(PLUGIN, pod("a").tolerate("team", effect="NoExecute"), TAINTED)


def test_each_of_several_taints_has_to_be_tolerated() -> None:
    assert "tainted" in rejections(PLUGIN, pod("a").tolerate("team"), TAINTED.taint("gpu"))


def test_the_fewer_taints_advise_against_a_node_the_better() -> None:
    once = node("once").taint("a", effect="PreferNoSchedule")
    thrice = node("thrice").taint("a", effect="PreferNoSchedule")
    thrice = thrice.taint("b", effect="PreferNoSchedule").taint("c", effect="PreferNoSchedule")
    assert scores(PLUGIN, pod("a"), CLEAN, once, thrice) == {"clean": 100, "once": 67, "thrice": 0}


def test_tolerated_taints_and_those_with_other_effects_do_not_count_against_a_node() -> None:
    advised = node("n1").taint("a", effect="PreferNoSchedule")
    tolerant = pod("a").tolerate("a")
    assert scores(PLUGIN, tolerant, advised, TAINTED) == {"n1": 100, "tainted": 100}


def test_where_nothing_advises_against_any_node_all_are_best() -> None:
    assert scores(PLUGIN, pod("a"), CLEAN, node("n2")) == {"clean": 100, "n2": 100}


def test_a_node_that_becomes_tolerable_wakes_the_pod() -> None:
    freed = node("tainted")
    assert wakes(PLUGIN, pod("a"), Resource.NODE, Action.ADD, None, freed)
    assert wakes(PLUGIN, pod("a"), Resource.NODE, Action.UPDATE_NODE_TAINT, TAINTED, freed)
    assert not wakes(PLUGIN, pod("a"), Resource.NODE, Action.ADD, None, TAINTED)
    assert not wakes(PLUGIN, pod("a"), Resource.NODE, Action.UPDATE_NODE_TAINT, freed, freed)


def test_its_own_new_toleration_wakes_the_pod_and_that_of_another_does_not() -> None:
    change = (Resource.UNSCHEDULED_POD, Action.UPDATE_POD_TOLERATION)
    assert wakes(PLUGIN, pod("a"), *change, pod("a"), pod("a").tolerate())
    assert not wakes(PLUGIN, pod("b"), *change, pod("a"), pod("a").tolerate())
