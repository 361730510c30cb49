"""Taints and tolerations."""

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
def test_an_untolerated_taint_rules_the_node_out(effect: str) -> None:
    refused = rejections(PLUGIN, pod("a"), CLEAN, node("n1").taint("team", "blue", effect=effect))
    assert refused == {"n1": Status.unresolvable(REASON)}


def test_a_prefer_no_schedule_taint_does_not_rule_the_node_out() -> None:
    assert rejections(PLUGIN, pod("a"), node("n1").taint("team", effect="PreferNoSchedule")) == {}


def test_a_taint_is_tolerated_by_value_or_by_key_or_by_a_toleration_of_all() -> None:
    for tolerant in (pod("a").tolerate("team", "blue"), pod("a").tolerate("team"), pod("a").tolerate()):
        assert rejections(PLUGIN, tolerant, TAINTED) == {}
    assert "tainted" in rejections(PLUGIN, pod("a").tolerate("team", "red"), TAINTED)
    assert "tainted" in rejections(PLUGIN, pod("a").tolerate("team", effect="NoExecute"), TAINTED)


def test_all_taints_must_be_tolerated() -> None:
    assert "tainted" in rejections(PLUGIN, pod("a").tolerate("team"), TAINTED.taint("gpu"))


def test_fewer_untolerated_prefer_no_schedule_taints_score_better() -> None:
    once = node("once").taint("a", effect="PreferNoSchedule")
    thrice = node("thrice").taint("a", effect="PreferNoSchedule")
    thrice = thrice.taint("b", effect="PreferNoSchedule").taint("c", effect="PreferNoSchedule")
    assert scores(PLUGIN, pod("a"), CLEAN, once, thrice) == {"clean": 100, "once": 67, "thrice": 0}


def test_tolerated_taints_and_other_effects_do_not_lower_the_score() -> None:
    advised = node("n1").taint("a", effect="PreferNoSchedule")
    tolerant = pod("a").tolerate("a")
    assert scores(PLUGIN, tolerant, advised, TAINTED) == {"n1": 100, "tainted": 100}


def test_without_such_taints_all_nodes_get_the_best_score() -> None:
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
