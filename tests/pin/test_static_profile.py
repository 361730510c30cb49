"""The static scheduler in virtual time: the labeled node that a pod goes to, or why there is none."""

import pytest
from tests.engine.stage import Stage, room

from longshore.api.meta import ApiObject
from longshore.engine import Engine
from longshore.pin.labels import legacy_key, pin_key
from longshore.pin.plugin import REASON_NODE_GONE, REASON_NOT_PINNED
from longshore.pin.profile import StaticOptions, static_configuration, static_plugins
from longshore.pin.taints import REASON_NOT_READY
from longshore.testing import NodeBuilder, PodBuilder, pod, pv, pvc

KEY = pin_key("static", "default", "web-0")
LEGACY = legacy_key("static", "web-0")
WEB = pod("web-0").scheduler("static").requests(cpu="1")


class Static(Stage):
    def __init__(self, *objects: ApiObject, bind_latency: float = 0.0, **options: bool) -> None:
        self.warned: list[tuple[str, str]] = []
        chosen = StaticOptions(**options)
        plugins = static_plugins(chosen, on_legacy=lambda key, node: self.warned.append((key, node)))
        engine = Engine(static_configuration("static", chosen), plugins=plugins)
        super().__init__(engine=engine, bind_latency=bind_latency)
        self.create(*objects)
        self.run(until=1.0)

    def comes_back(self, pod_: PodBuilder, *, time: int) -> str:
        """Delete the pod, create it again, and return its new node."""
        self.delete(self.pod(pod_.metadata.name))
        self.run(until=self.now + 5.0)
        self.create(pod_.uid(f"again-{time}"))
        self.run(until=self.now + 5.0)
        return self.node_of(pod_.metadata.name)


def labeled(name: str, value: str = "", *, key: str = KEY, cpu: str = "4") -> NodeBuilder:
    return room(name, cpu).labels(**{key: value})


@pytest.mark.parametrize("value", ["", "x", "whatever"])
def test_a_pod_goes_to_the_labeled_node_whatever_the_value(value: str) -> None:
    assert Static(room("n1"), room("n3"), labeled("n2", value), WEB).node_of("web-0") == "n2"


def test_without_a_label_a_pod_waits_with_a_message_that_names_it() -> None:
    static = Static(room("n1"), labeled("n2"), pod("web-1").scheduler("static"))
    missing = REASON_NOT_PINNED.format(key=pin_key("static", "default", "web-1"))
    assert static.message("web-1") == f"0/2 nodes are available: {missing}."
    assert static.condition("web-1").reason == "Unschedulable"
    assert [reason for reason, _ in static.told("web-1")] == ["FailedScheduling"]


def test_the_label_of_another_namespace_does_not_count() -> None:
    other = pod("web-0", namespace="other").scheduler("static")
    static = Static(labeled("n1"), WEB, other)
    assert static.node_of("web-0") == "n1"
    assert static.cluster.pods["other/web-0"].spec.node_name == ""


def test_the_label_of_another_scheduler_does_not_count() -> None:
    assert Static(labeled("n1", key=pin_key("test", "default", "web-0")), WEB).node_of("web-0") == ""


def test_a_new_label_wakes_the_pod_immediately() -> None:
    static = Static(room("n1"), WEB)
    static.create(labeled("n1"), at=100.0)
    static.run(until=100.0)
    assert static.node_of("web-0") == "n1"


def test_a_running_pod_follows_its_label_only_when_it_is_created_again() -> None:
    static = Static(labeled("n1"), room("n2"), WEB)
    static.create(room("n1"), labeled("n2"))
    static.run(until=10.0)
    assert static.node_of("web-0") == "n1"
    assert static.comes_back(WEB, time=1) == "n2"


# The older form of the label, without the namespace.


def test_the_older_label_counts_with_a_warning() -> None:
    static = Static(labeled("n1", key=LEGACY), WEB)
    assert static.node_of("web-0") == "n1"
    assert static.warned == [(LEGACY, "n1")]


def test_the_older_label_does_not_count_if_disabled() -> None:
    static = Static(labeled("n1", key=LEGACY), WEB, legacy_labels=False)
    assert KEY in static.message("web-0")
    assert static.warned == []


def test_the_older_label_never_overrides_the_newer() -> None:
    static = Static(labeled("a", "force", key=LEGACY), labeled("b", cpu="500m"), WEB)
    assert static.node_of("web-0") == ""
    assert "1 Insufficient cpu" in static.message("web-0")
    assert static.warned == []


# Several labeled nodes.


def test_of_several_nodes_the_first_by_name_is_chosen_and_then_the_last_one() -> None:
    static = Static(labeled("b"), labeled("c"), WEB)
    assert static.node_of("web-0") == "b"
    static.create(labeled("a"))
    assert {static.comes_back(WEB, time=time) for time in range(20)} == {"b"}


def test_of_several_nodes_one_that_has_room_is_chosen() -> None:
    assert Static(labeled("a", cpu="500m"), labeled("b"), WEB).node_of("web-0") == "b"


def test_the_last_node_of_pods_that_ran_before_is_remembered() -> None:
    static = Static(labeled("a"), labeled("b"), WEB.on("b"))
    assert static.comes_back(WEB, time=1) == "b"


def test_with_random_choice_every_labeled_node_is_used() -> None:
    static = Static(labeled("a"), labeled("b"), WEB, random=True)
    assert {static.comes_back(WEB, time=time) for time in range(50)} == {"a", "b"}


# Infeasible nodes.


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (labeled("n1", cpu="500m"), "1 Insufficient cpu"),
        (labeled("n1").unschedulable(), "1 node(s) were unschedulable"),
        (labeled("n1").taint("node.kubernetes.io/not-ready"), f"1 {REASON_NOT_READY}"),
        (labeled("n1").taint("node.kubernetes.io/unreachable"), f"1 {REASON_NOT_READY}"),
        (labeled("n1").taint("gone", effect="NoExecute"), "1 node(s) had untolerated taint(s)"),
    ],
    ids=["full", "cordoned", "not ready", "unreachable", "evicting"],
)
class TestInfeasibleNode:
    def test_the_reason_is_reported_until_it_is_resolved(self, bad: NodeBuilder, reason: str) -> None:
        static = Static(bad, room("n2"), WEB)
        assert reason in static.message("web-0")
        static.create(labeled("n1"), at=60.0)
        static.run(until=62.0)
        assert static.node_of("web-0") == "n1"

    def test_the_value_force_binds_anyway(self, bad: NodeBuilder, reason: str) -> None:
        assert Static(bad.labels(**{KEY: "force"}), room("n2"), WEB).node_of("web-0") == "n1"

    def test_a_label_that_becomes_force_binds_immediately(self, bad: NodeBuilder, reason: str) -> None:
        static = Static(bad, room("n2"), WEB)
        static.create(bad.labels(**{KEY: "force"}), at=60.0)
        static.run(until=60.0)
        assert static.node_of("web-0") == "n1"


def test_a_labeled_node_that_is_deleted_is_named() -> None:
    static = Static(labeled("n1"), room("n2"), WEB)
    static.delete(labeled("n1"))
    static.run(until=5.0)
    static.comes_back(WEB, time=1)
    assert REASON_NODE_GONE.format(key=KEY, node="n1") in static.message("web-0")


def test_other_taints_do_not_apply_to_a_pinned_pod() -> None:
    static = Static(labeled("n1").taint("node-role.kubernetes.io/control-plane"), WEB)
    assert static.node_of("web-0") == "n1"


def test_all_taints_apply_to_a_pinned_pod_if_so_configured() -> None:
    tainted = labeled("n1").taint("node-role.kubernetes.io/control-plane")
    static = Static(tainted, WEB, respect_taints=True)
    assert "1 node(s) had untolerated taint(s)" in static.message("web-0")


def test_no_pod_is_evicted_for_a_pinned_pod() -> None:
    there = pod("there").requests(cpu="4").on("n1").scheduler("other")
    static = Static(labeled("n1"), there, WEB.priority(1000))
    static.run(until=60.0)
    assert static.node_of("web-0") == ""
    assert static.node_of("there") == "n1"


def test_a_pod_whose_volume_is_on_another_node_gets_that_reason() -> None:
    local = pv("disk").reachable_from("kubernetes.io/hostname", "n2").claimed_by("data")
    static = Static(labeled("n1"), room("n2"), local, pvc("data").bound_to("disk"), WEB.claim("data"))
    assert "1 node(s) didn't match PersistentVolume's node affinity" in static.message("web-0")


def test_gated_pods_and_pods_that_end_are_not_scheduled() -> None:
    static = Static(labeled("n1"), WEB.gates("example.com/wait"))
    assert static.place("web-0") == "gated"
    static.create(WEB)
    static.run(until=5.0)
    assert static.node_of("web-0") == "n1"


def test_a_name_too_long_for_a_label_is_reported() -> None:
    name = "w" * 64
    static = Static(labeled("n1"), pod(name).scheduler("static"))
    assert "cannot be expressed as a label" in static.message(name)


def test_a_pod_that_fails_to_bind_does_not_block_others() -> None:
    """The first pod is bound by another program just before."""
    second = pod("web-1").scheduler("static")
    key = pin_key("static", "default", "web-1")
    static = Static(labeled("n1").labels(**{key: ""}), room("n2"), bind_latency=1.0)
    static.create(WEB, second)
    static.create(WEB.on("n2"), at=1.5)
    static.run(until=10.0)
    assert static.node_of("web-0") == "n2"
    assert static.node_of("web-1") == "n1"
