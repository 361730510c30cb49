"""Binding through the API server."""

from longshore.cluster import PodInfo
from longshore.framework import CycleState
from longshore.framework.effects import Bind
from longshore.plugins import DefaultBinder
from longshore.testing import pod


def test_the_scheduler_is_asked_to_assign_the_pod_to_the_node() -> None:
    assert DefaultBinder().bind(CycleState(), PodInfo.of(pod("a")), "n1") == Bind.of(pod("a"), "n1")
