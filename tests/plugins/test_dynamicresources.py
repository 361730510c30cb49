"""Pods with resource claims are told that these are not supported yet."""

import msgspec
from tests.plugins.asking import concerned, wakes

from longshore.api import Pod, PodResourceClaim
from longshore.cluster import ClusterState, PodInfo
from longshore.framework import Action, CycleState, Resource, Status
from longshore.plugins import DynamicResources
from longshore.plugins.dynamicresources import REASON
from longshore.testing import node, pod

PLUGIN = DynamicResources()


def claiming() -> Pod:
    spec = msgspec.structs.replace(pod("a").spec, resource_claims=(PodResourceClaim(name="gpu"),))
    return msgspec.structs.replace(pod("a"), spec=spec)


def test_a_pod_with_claims_is_refused_whatever_nodes_there_are() -> None:
    answer = PLUGIN.pre_filter(CycleState(), PodInfo.of(claiming()), ClusterState())
    assert answer == Status.unresolvable(REASON)


def test_other_pods_are_of_no_concern() -> None:
    assert concerned(PLUGIN, claiming())
    assert not concerned(PLUGIN, pod("a"))


def test_nothing_in_the_cluster_can_help() -> None:
    assert not wakes(PLUGIN, claiming(), Resource.NODE, Action.ADD, None, node("n1"))
