"""Plugins that are one decorated function."""

from functools import partial

import numpy as np
import pytest

from longshore.cluster import CPU, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Ints
from longshore.framework import (
    MAX_SCORE,
    Action,
    Rejection,
    Resource,
    Scope,
    WakeOn,
    filter_plugin,
    score_plugin,
)
from longshore.framework.extension_points import points_of
from longshore.framework.normalize import by_largest
from longshore.sim import schedule
from longshore.testing import node, pod

SPOT = "node(s) were spot instances"


@filter_plugin
def no_spot(pod: PodInfo, node: OneNode) -> str | None:
    return SPOT if node.labels.get("lifecycle") == "spot" and "spot" not in pod.labels else None


def test_a_filter_is_named_after_its_function_and_has_one_point() -> None:
    assert no_spot.name == "NoSpot"
    assert points_of(no_spot) == {"filter"}


def test_a_filter_refuses_nodes_with_its_reason() -> None:
    nodes = [node("a").labels(lifecycle="spot"), node("b").labels(lifecycle="spot")]
    placed = schedule(nodes=nodes, pods=[pod("x"), pod("y").labels(spot="yes")], plugins=[no_spot])
    assert placed == {"y": "a"}
    assert placed.pending["x"].startswith(f"0/2 nodes are available: 2 {SPOT}.")


def test_a_decorated_function_can_still_be_called() -> None:
    @score_plugin
    def half(pod: PodInfo, node: OneNode) -> int:
        return 50

    assert half(None, None) == 50


def test_a_score_decides_between_nodes() -> None:
    @score_plugin(weight=10)
    def last_one(pod: PodInfo, node: OneNode) -> int:
        return MAX_SCORE if node.name == "c" else 0

    assert schedule(nodes=[node(n) for n in "abc"], pods=[pod("x")], plugins=[last_one]) == {"x": "c"}


def test_scores_out_of_range_are_normalized_on_request() -> None:
    @score_plugin(normalize=partial(by_largest, reverse=True), name="Smallest", weight=10)
    def big_numbers(pod: PodInfo, node: OneNode) -> int:
        return 1000 * int(node.name)

    assert schedule(nodes=[node("3"), node("1"), node("2")], pods=[pod("x")], plugins=[big_numbers]) == {
        "x": "1"
    }


def test_a_vectorized_filter_answers_for_all_nodes() -> None:
    @filter_plugin(vectorized=True, scope=Scope.PODS)
    def keeps_a_core(pod: PodInfo, nodes: Nodes) -> list[Rejection]:
        return [Rejection("node(s) had less than a core", nodes.free("cpu") < 1000)]

    small, large = node("a").allocatable(cpu="1"), node("b").allocatable(cpu="2")
    pods = [pod(name).requests(cpu="500m") for name in ("x", "y", "z", "w")]
    placed = schedule(nodes=[small, large], pods=pods, plugins=[keeps_a_core])
    assert sorted(placed.values()) == ["a", "b", "b", "b"]


def test_a_vectorized_score_answers_for_all_nodes() -> None:
    @score_plugin(vectorized=True, weight=100)
    def largest(pod: PodInfo, nodes: Nodes) -> Ints:
        amounts = np.asarray(nodes.allocatable[CPU])
        return np.where(amounts == amounts.max(), MAX_SCORE, 0)

    nodes = [node("a").allocatable(cpu="1"), node("b").allocatable(cpu="4"), node("c").allocatable(cpu="2")]
    assert schedule(nodes=nodes, pods=[pod("x")], plugins=[largest]) == {"x": "b"}


def test_events_that_a_filter_wakes_on_are_its_attribute() -> None:
    wake = WakeOn(Resource.NODE, Action.UPDATE_NODE_LABEL)
    assert not hasattr(no_spot, "wakes_on")
    woken = filter_plugin(wakes_on=[wake])(lambda _pod, _node: None)
    assert getattr(woken, "wakes_on", None) == (wake,)


def test_a_function_of_other_arguments_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"needs_more must take two arguments"):

        @filter_plugin()
        def needs_more(state: object, pod: PodInfo, node: OneNode) -> None: ...


def test_a_plain_function_cannot_promise_a_scope() -> None:
    with pytest.raises(TypeError, match="only a vectorized function can have a scope"):

        @score_plugin(scope=Scope.NODE)
        def plain(pod: PodInfo, node: OneNode) -> int:
            return 0


def test_a_weight_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="the weight must be at least 1, not 0"):
        score_plugin(weight=0)
