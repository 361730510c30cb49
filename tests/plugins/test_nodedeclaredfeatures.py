"""Features that pods need and nodes declare."""

import msgspec
from tests.plugins.one_plugin import concerned, rejections, wakes

from longshore.api import ContainerRestartRule, Pod
from longshore.framework import Action, Resource, Status
from longshore.plugins import NodeDeclaredFeatures
from longshore.plugins.nodedeclaredfeatures import (
    HOST_NETWORK_IN_USER_NAMESPACE,
    REASON,
    RESTART_ALL_CONTAINERS,
)
from longshore.testing import node, pod

PLUGIN = NodeDeclaredFeatures()
replace = msgspec.structs.replace


def on_host_network(*, host_users: bool | None) -> Pod:
    plain = pod("a").host_network()
    return replace(plain, spec=replace(plain.spec, host_users=host_users))


def restarting_all() -> Pod:
    plain = pod("a")
    rules = (ContainerRestartRule(action="RestartAllContainers"),)
    containers = tuple(replace(c, restart_policy_rules=rules) for c in plain.spec.containers)
    return replace(plain, spec=replace(plain.spec, containers=containers))


def test_most_pods_need_no_feature() -> None:
    assert not concerned(PLUGIN, pod("a"))
    assert not concerned(PLUGIN, on_host_network(host_users=None))
    assert not concerned(PLUGIN, on_host_network(host_users=True))


def test_host_network_in_a_user_namespace_needs_a_node_with_that_feature() -> None:
    able = node("able").features("Other", HOST_NETWORK_IN_USER_NAMESPACE)
    refused = rejections(PLUGIN, on_host_network(host_users=False), able, node("n1").features("Other"))
    assert refused == {"n1": Status.unresolvable(REASON)}


def test_restarting_all_containers_needs_a_node_with_that_feature() -> None:
    refused = rejections(PLUGIN, restarting_all(), node("able").features(RESTART_ALL_CONTAINERS), node("n1"))
    assert refused == {"n1": Status.unresolvable(REASON)}


def test_changed_features_of_a_node_wake_the_pod() -> None:
    before, after = node("n1"), node("n1").features(RESTART_ALL_CONTAINERS)
    change = (Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE)
    assert wakes(PLUGIN, restarting_all(), *change, before, after)
    assert not wakes(PLUGIN, restarting_all(), *change, after, after)
    assert wakes(PLUGIN, restarting_all(), Resource.NODE, Action.ADD, None, before)


def test_changed_needs_of_the_pod_itself_wake_it() -> None:
    change = (Resource.UNSCHEDULED_POD, Action.UPDATE_OTHER)
    assert wakes(PLUGIN, restarting_all(), *change, restarting_all(), pod("a"))
    assert not wakes(PLUGIN, restarting_all(), *change, restarting_all(), restarting_all())
    assert not wakes(PLUGIN, pod("b"), *change, restarting_all(), pod("a"))
