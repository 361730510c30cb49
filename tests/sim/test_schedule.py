"""`schedule`: the nodes of pods from one call."""

from typing import Any

from longshore.framework import Wait
from longshore.sim import schedule
from longshore.testing import node, pod, storage_class


def test_pods_go_where_the_default_plugins_send_them() -> None:
    nodes = [node("a").allocatable(cpu="1"), node("b").allocatable(cpu="2")]
    pods = [pod("x").requests(cpu="2"), pod("y").requests(cpu="1"), pod("there").on("a")]
    placed = schedule(nodes=nodes, pods=pods)
    assert placed == {"x": "b", "y": "a", "there": "a"}
    assert placed.pending == {}


def test_a_pod_that_fits_nowhere_is_pending_with_its_condition() -> None:
    placed = schedule(nodes=[node("a").allocatable(cpu="1")], pods=[pod("big").requests(cpu="2")])
    assert placed == {}
    assert placed.pending["big"].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_pods_outside_of_the_default_namespace_are_shown_with_it() -> None:
    pods = [pod("x"), pod("x", namespace="other")]
    assert schedule(nodes=[node("a")], pods=pods) == {"x": "a", "other/x": "a"}


class Picky:
    name = "Picky"

    def __init__(self, args: Any) -> None:
        self.only = args.get("only", "a")

    def filter_node(self, state: Any, pod: Any, node: Any) -> str | None:
        return None if node.name == self.only else "node(s) were not the one"


def test_a_class_gets_its_arguments() -> None:
    nodes, pods = [node("a"), node("b")], [pod("x")]
    assert schedule(nodes=nodes, pods=pods, plugins=[Picky]) == {"x": "a"}
    assert schedule(nodes=nodes, pods=pods, plugins=[Picky], args={"Picky": {"only": "b"}}) == {"x": "b"}


def test_waiting_takes_no_real_time() -> None:
    class Waits:
        name = "Waits"

        def permit(self, state: Any, pod: Any, node: Any) -> Wait:
            return Wait(600.0)

    placed = schedule(nodes=[node("a")], pods=[pod("x")], plugins=[Waits])
    said = "rejected due to timeout after waiting 10m0s at plugin Waits"
    assert placed.pending == {"x": f"0/1 nodes are available: 1 {said}."}


def test_objects_of_other_kinds_are_there_before_the_pods() -> None:
    placed = schedule(nodes=[node("a")], pods=[pod("x").claim("data")], others=[storage_class("fast")])
    assert placed.pending["x"].startswith('0/1 nodes are available: persistentvolumeclaim "data" not found.')
