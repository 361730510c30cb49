"""Nodes with the pods that are nominated to them counted."""

import numpy as np

from longshore.cluster import CPU, PODS, ClusterState, PodInfo
from longshore.cluster.nominated_nodes import NominatedNodes
from longshore.testing import PodBuilder, node, pod


def cluster_with(*nominated: PodBuilder) -> ClusterState:
    cluster = ClusterState()
    for name in ("n1", "n2"):
        cluster.add_node(node(name).allocatable(cpu="4"))
    cluster.add_pod(pod("there").requests(cpu="1").on("n1"))
    for each in nominated:
        cluster.nominations.add(PodInfo.of(each), "n1")
    return cluster


def test_nominated_pods_count_with_their_requests_and_their_assumed_use() -> None:
    cluster = cluster_with(pod("big").requests(cpu="2"), pod("small"))
    nodes = NominatedNodes(cluster, PodInfo.of(pod("web")))
    assert nodes.names == ["n1"]
    assert np.asarray(nodes.requested[CPU]).tolist() == [3000]
    assert np.asarray(nodes.requested[PODS]).tolist() == [3]
    # A pod without a request for cpu is assumed to use 100m.
    assert np.asarray(nodes.nonzero_requested[0]).tolist() == [3100]


def test_a_pod_leaves_no_room_for_itself_or_for_lower_priorities() -> None:
    web = pod("web").requests(cpu="1").priority(5)
    cluster = cluster_with(web, pod("lesser").requests(cpu="2"))
    nodes = NominatedNodes(cluster, PodInfo.of(web))
    assert np.asarray(nodes.requested[CPU]).tolist() == [1000]
    assert np.asarray(nodes.nonzero_requested[0]).tolist() == [1000]
