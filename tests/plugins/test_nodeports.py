"""Host ports."""

from tests.plugins.one_plugin import cluster_of, concerned, rejections, wakes

from longshore.cluster import PodInfo
from longshore.framework import Action, CycleState, Resource, Status
from longshore.plugins import NodePorts
from longshore.plugins.nodeports import REASON
from longshore.testing import node, pod

PLUGIN = NodePorts()
N1, N2 = node("n1"), node("n2")
WANTS = pod("a").host_port(8080)
HOLDS = pod("b").host_port(8080)


def test_a_pod_without_host_ports_is_not_affected() -> None:
    assert not concerned(PLUGIN, pod("a"))
    assert concerned(PLUGIN, WANTS)


def test_a_port_in_use_rules_the_node_out_until_its_pod_is_gone() -> None:
    assert rejections(PLUGIN, WANTS, N1, N2, HOLDS.on("n1")) == {"n1": Status.unschedulable(REASON)}


def test_another_protocol_or_address_is_another_port() -> None:
    assert rejections(PLUGIN, WANTS, N1, pod("b").host_port(8080, protocol="UDP").on("n1")) == {}
    mine, theirs = pod("a").host_port(8080, ip="10.0.0.1"), pod("b").host_port(8080, ip="10.0.0.2")
    assert rejections(PLUGIN, mine, N1, theirs.on("n1")) == {}


def test_the_wildcard_address_conflicts_with_each_address() -> None:
    assert "n1" in rejections(PLUGIN, WANTS, N1, pod("b").host_port(8080, ip="10.0.0.1").on("n1"))
    assert "n1" in rejections(PLUGIN, pod("a").host_port(8080, ip="10.0.0.1"), N1, HOLDS.on("n1"))


def test_a_single_node_is_filtered_with_the_pods_of_a_dry_run() -> None:
    cluster = cluster_of(N1, HOLDS.on("n1"))
    one = cluster.one_node(0)
    assert [r.where for r in PLUGIN.filter(CycleState(), PodInfo.of(WANTS), one)] == [True]
    one.remove(PodInfo.of(HOLDS.on("n1")))
    assert [r.where for r in PLUGIN.filter(CycleState(), PodInfo.of(WANTS), one)] == [False]


def test_the_end_of_a_pod_with_the_same_port_wakes_the_pod() -> None:
    gone = (Resource.ASSIGNED_POD, Action.DELETE)
    assert wakes(PLUGIN, WANTS, *gone, HOLDS.on("n1"))
    assert wakes(PLUGIN, WANTS, Resource.UNSCHEDULED_POD, Action.DELETE, HOLDS.nominated("n1"))
    assert not wakes(PLUGIN, WANTS, Resource.UNSCHEDULED_POD, Action.DELETE, HOLDS)
    assert not wakes(PLUGIN, WANTS, *gone, pod("b").host_port(9090).on("n1"))
    assert not wakes(PLUGIN, WANTS, *gone, pod("b").on("n1"))


def test_a_new_node_wakes_the_pod_and_a_changed_one_does_not() -> None:
    assert wakes(PLUGIN, WANTS, Resource.NODE, Action.ADD, None, N1)
    assert not wakes(PLUGIN, WANTS, Resource.NODE, Action.UPDATE_NODE_LABEL, N1, N1)
