"""Pods with resource claims are rejected, because these are not supported yet."""

import msgspec
from tests.plugins.one_plugin import concerned, wakes

from longshore.api import Pod, PodResourceClaim
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.decision.diagnosis import Diagnosis
from longshore.framework import Action, CycleState, Resource, Status
from longshore.plugins import DynamicResources
from longshore.plugins.dynamicresources import ERROR_NOT_ASKED, REASON, REASON_NOTHING_TO_DEALLOCATE
from longshore.testing import node, pod

PLUGIN = DynamicResources()


def claiming() -> Pod:
    spec = msgspec.structs.replace(pod("a").spec, resource_claims=(PodResourceClaim(name="gpu"),))
    return msgspec.structs.replace(pod("a"), spec=spec)


def test_a_pod_with_claims_is_rejected_whatever_nodes_there_are() -> None:
    answer = PLUGIN.pre_filter(CycleState(), PodInfo.of(claiming()), ClusterState())
    assert answer == Status.unresolvable(REASON)


def test_other_pods_are_not_affected() -> None:
    assert concerned(PLUGIN, claiming())
    assert not concerned(PLUGIN, pod("a"))


def test_no_event_in_the_cluster_can_help() -> None:
    assert not wakes(PLUGIN, claiming(), Resource.NODE, Action.ADD, None, node("n1"))


def told(asked: Pod, refusal: Status | None = None) -> Status | None:
    """The status of PostFilter after this status of a PreFilter."""
    diagnosis = Diagnosis(ClusterState())
    diagnosis.pre_filter = refusal
    return PLUGIN.post_filter(CycleState(), PodInfo.of(asked), diagnosis).status


def test_without_a_feasible_node_there_is_nothing_to_deallocate() -> None:
    assert told(pod("a")) == Status.unschedulable(REASON_NOTHING_TO_DEALLOCATE)
    assert told(pod("a"), Status.unschedulable("later")) == Status.unschedulable(REASON_NOTHING_TO_DEALLOCATE)


def test_after_a_prefilter_of_another_plugin_the_state_is_not_found() -> None:
    assert told(pod("a"), Status.unresolvable("no such claim")) == Status.error(ERROR_NOT_ASKED)


def test_a_pod_with_claims_gets_no_second_reason() -> None:
    assert told(claiming(), Status.unresolvable(REASON)) == Status.unschedulable()
