"""The extension points: the order of calls, and the meaning of answers."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pytest
from tests.engine.stage import Stage, room

from longshore.api import Pod
from longshore.cluster import CPU, ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Ints
from longshore.framework import (
    SKIP,
    CycleState,
    NodeStatuses,
    PostFilterResult,
    Rejection,
    Scope,
    Status,
)
from longshore.testing import pod

A = pod("a").requests(cpu="1")


class Recorder:
    """Has all points, and notes each call as `name.point`."""

    wakes_on = ()

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls

    def note(self, point: str) -> None:
        self.calls.append(f"{self.name}.{point}")

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.note("pre_enqueue")
        return None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> None:
        self.note("pre_filter")

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        self.note("filter")
        return ()

    def post_filter(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        self.note("post_filter")
        return PostFilterResult(Status.unschedulable(f"{self.name} knows no way"))

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> None:
        self.note("pre_score")

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
        self.note("score")
        return 0

    def normalize(self, state: CycleState, pod: PodInfo, scores: Ints, nodes: Nodes) -> Ints:
        self.note("normalize")
        return scores

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.note("reserve")

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.note("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.note("permit")

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.note("pre_bind")

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.note("bind")
        return SKIP

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.note("post_bind")


def both(*points: str) -> list[str]:
    return [f"{name}.{point}" for point in points for name in ("One", "Two")]


def test_points_are_called_in_order_and_so_are_the_plugins_of_a_point() -> None:
    calls: list[str] = []
    stage = Stage(Recorder("One", calls), Recorder("Two", calls))
    stage.create(room("n1"), room("n2"), A)
    stage.run()
    assert calls == [
        *both("pre_enqueue", "pre_filter", "filter", "pre_score"),
        *("One.score", "One.normalize", "Two.score", "Two.normalize"),
        *both("reserve", "permit", "pre_bind", "bind", "post_bind"),
    ]


def test_with_one_feasible_node_nothing_is_scored() -> None:
    calls: list[str] = []
    stage = Stage(Recorder("One", calls))
    stage.create(room("n1"), A)
    stage.run()
    assert stage.node_of("a") == "n1"
    assert not {"One.pre_score", "One.score", "One.normalize"} & set(calls)


class Refuses(Recorder):
    """Refuses all nodes."""

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        self.note("filter")
        yield Rejection("node(s) were refused", where=True)


def test_if_no_node_fits_post_filters_run_in_order_and_the_message_quotes_all() -> None:
    calls: list[str] = []
    stage = Stage(Refuses("One", calls), Recorder("Two", calls))
    stage.create(room("n1"), A)
    stage.run()
    assert calls[-2:] == both("post_filter")
    assert stage.message("a") == (
        "0/1 nodes are available: 1 node(s) were refused. One knows no way, Two knows no way"
    )


class Answers(Recorder):
    """Returns the given answer at PreFilter."""

    def __init__(self, name: str, calls: list[str], answer: Status | Collection[str] | None) -> None:
        super().__init__(name, calls)
        self._answer = answer

    def pre_filter(  # type: ignore[override]
        self, state: CycleState, pod: PodInfo, cluster: ClusterState
    ) -> Status | Collection[str] | None:
        self.note("pre_filter")
        return self._answer


def test_skip_from_pre_filter_skips_the_filter_of_that_plugin_only() -> None:
    calls: list[str] = []
    stage = Stage(Answers("One", calls, SKIP), Recorder("Two", calls))
    stage.create(room("n1"), A)
    stage.run()
    assert "One.filter" not in calls
    assert "Two.filter" in calls
    assert stage.node_of("a") == "n1"


def test_unschedulable_from_pre_filter_lets_the_others_prepare_and_post_filter_run() -> None:
    calls: list[str] = []
    stage = Stage(Answers("One", calls, Status.unschedulable("not today")), Recorder("Two", calls))
    stage.create(room("n1"), A)
    stage.run()
    assert calls == [*both("pre_enqueue", "pre_filter", "post_filter")]
    assert stage.message("a").startswith("0/1 nodes are available: not today. One knows no way")


def test_unresolvable_from_pre_filter_stops_at_once_but_post_filter_runs() -> None:
    calls: list[str] = []
    stage = Stage(Answers("One", calls, Status.unresolvable("never")), Recorder("Two", calls))
    stage.create(room("n1"), A)
    stage.run()
    assert calls == [*both("pre_enqueue"), "One.pre_filter", *both("post_filter")]
    assert stage.message("a").startswith("0/1 nodes are available: never. ")


def test_node_sets_of_several_pre_filters_are_intersected() -> None:
    calls: list[str] = []
    stage = Stage(Answers("One", calls, {"n1", "n2"}), Answers("Two", calls, ["n2", "n3"]))
    stage.create(room("n1"), room("n2"), room("n3"), A)
    stage.run()
    assert stage.node_of("a") == "n2"


def test_node_sets_that_have_no_node_in_common() -> None:
    calls: list[str] = []
    stage = Stage(Answers("Two", calls, {"n1"}), Answers("One", calls, {"n2"}))
    stage.create(room("n1"), room("n2"), A)
    stage.run()
    assert stage.message("a").startswith(
        "0/2 nodes are available: node(s) didn't satisfy plugin(s) [One Two] simultaneously. "
    )


def test_a_node_set_that_is_empty_from_the_start() -> None:
    stage = Stage(Answers("One", [], ()))
    stage.create(room("n1"), A)
    stage.run()
    assert stage.message("a").startswith("0/1 nodes are available: node(s) didn't satisfy plugin One. ")


def test_nodes_outside_of_the_set_are_counted_separately_from_refused_ones() -> None:
    class NarrowsAndRefuses(Answers):
        def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
            yield Rejection("node(s) were refused", where=True)

    stage = Stage(NarrowsAndRefuses("One", [], {"n1"}))
    stage.create(room("n1"), room("n2"), room("n3"), A)
    stage.run()
    assert stage.message("a").startswith(
        "0/3 nodes are available: 1 node(s) were refused, 2 node(s) didn't satisfy plugin(s) [One]. "
    )


def test_names_in_a_set_that_no_node_has_are_ignored() -> None:
    stage = Stage(Answers("One", [], {"n1", "no-such-node"}))
    stage.create(room("n1"), room("n2"), A)
    stage.run()
    assert stage.node_of("a") == "n1"


class Prefers:
    """Scores one node 10 and the others 0."""

    def __init__(self, name: str, node: str) -> None:
        self.name = name
        self._node = node

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        return np.array([10 * (name == self._node) for name in nodes.names], np.int64)


def test_skip_from_pre_score_skips_the_score_of_that_plugin_only() -> None:
    class Declines(Prefers):
        def pre_score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Status:
            return SKIP

    stage = Stage(Declines("One", "n1"), Prefers("Two", "n2"), weights={"One": 5})
    stage.create(room("n1"), room("n2"), A)
    stage.run()
    assert stage.node_of("a") == "n2"


@pytest.mark.parametrize(("weights", "chosen"), [({"One": 3, "Two": 2}, "n1"), ({"One": 2, "Two": 3}, "n2")])
def test_weights_decide_between_plugins(weights: dict[str, int], chosen: str) -> None:
    stage = Stage(Prefers("One", "n1"), Prefers("Two", "n2"), weights=weights)
    stage.create(room("n1"), room("n2"), A)
    stage.run()
    assert stage.node_of("a") == chosen


class SizeVectorized:
    """Refuses the node `small`, and prefers the node with the most allocatable cpu."""

    name = "Size"

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        yield Rejection("node(s) were small", np.array([name == "small" for name in nodes.names]))

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        return np.asarray(nodes.allocatable[CPU]) // 1000


class SizePlain:
    """The same, one node at a time."""

    name = "Size"

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> str | None:
        return "node(s) were small" if node.name == "small" else None

    def score_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> int:
        return node.allocatable[CPU] // 1000


def scoped(plugin: type, scope: Scope) -> Any:
    return type("Scoped", (plugin,), {"scope": scope})()


EITHER_FORM = pytest.mark.parametrize(
    "plugin",
    [SizeVectorized(), scoped(SizeVectorized, Scope.NODE), SizePlain(), scoped(SizePlain, Scope.NODE)],
    ids=["vectorized", "vectorized, by node", "plain", "plain, by node"],
)


@EITHER_FORM
def test_a_plugin_of_either_form_chooses_the_same(plugin: Any) -> None:
    stage = Stage(plugin)
    stage.create(room("small", "9"), room("large", "8"), room("larger", "9"), room("medium", "3"))
    for number in range(3):
        stage.create(pod(f"p{number}"), at=float(number))
    stage.run()
    assert {stage.node_of(f"p{number}") for number in range(3)} == {"larger"}


@EITHER_FORM
def test_a_plugin_of_either_form_gives_the_same_reason(plugin: Any) -> None:
    stage = Stage(plugin)
    stage.create(room("small"), A)
    stage.run()
    assert stage.message("a") == "0/1 nodes are available: 1 node(s) were small."


def test_a_plain_filter_is_called_only_for_nodes_that_vectorized_ones_left() -> None:
    asked: list[str] = []

    class Asked:
        name = "Asked"

        def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> None:
            asked.append(node.name)

    # The plain one comes first in the profile.
    stage = Stage(Asked(), SizeVectorized())
    stage.create(room("small"), room("large"), A)
    stage.run()
    assert asked == ["large"]


def test_a_node_counts_for_the_first_plugin_even_if_it_is_plain() -> None:
    class Plain:
        name = "Plain"

        def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> str:
            return "node(s) were not asked nicely"

    stage = Stage(Plain(), SizeVectorized())
    stage.create(room("small"), A)
    stage.run()
    assert stage.message("a") == "0/1 nodes are available: 1 node(s) were not asked nicely."


def test_a_plugin_that_is_not_concerned_is_not_called() -> None:
    calls: list[str] = []

    class Choosy(Recorder):
        def concerns(self, pod: PodInfo) -> bool:
            return "special" in pod.pod.metadata.labels

    stage = Stage(Choosy("One", calls))
    stage.create(room("n1"), room("n2"), A)
    stage.run()
    asked_about_nodes = {"One.pre_filter", "One.filter", "One.pre_score", "One.score", "One.normalize"}
    assert not asked_about_nodes & set(calls)
    stage.create(pod("b").labels(special="yes"))
    stage.run()
    assert asked_about_nodes <= set(calls)


def test_a_pod_kept_out_by_pre_enqueue_is_not_tried_and_nothing_is_written() -> None:
    class Gate:
        name = "Gate"
        wakes_on = ()

        def pre_enqueue(self, pod: Pod) -> Status | None:
            return None if "ready" in pod.metadata.labels else Status.unresolvable("not ready")

    stage = Stage(Gate())
    stage.create(room("n1"), A)
    stage.run()
    assert stage.place("a") == "gated"
    assert stage.told("a") == []
    stage.update(A.labels(ready="yes"))
    stage.run()
    assert stage.node_of("a") == "n1"


def test_pods_are_tried_in_the_order_of_queue_sort() -> None:
    class ByName:
        name = "ByName"

        def sort_key(self, pod: Pod, since: float) -> str:
            return pod.metadata.name

    calls: list[str] = []

    class Order(Recorder):
        def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> None:
            calls.append(pod.pod.metadata.name)

    stage = Stage(ByName(), Order("Order", []))
    stage.create(room("n1"), pod("c"), pod("a").priority(-1), pod("b"))
    stage.run()
    assert calls == ["a", "b", "c"]
