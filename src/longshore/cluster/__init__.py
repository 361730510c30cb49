"""The state of the cluster as columns: each node has a row, which is one element in every array.

    cluster = ClusterState()
    cluster.add_node(node)
    cluster.add_pod(pod)
    free = cluster.allocatable[CPU] - cluster.requested[CPU]    # of all nodes, in thousandths

A change of one pod touches one row. Names are strings only at the edges.
"""

from longshore.cluster.nodes import Nodes, OneNode
from longshore.cluster.pod_info import PodInfo
from longshore.cluster.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from longshore.cluster.state import ClusterState
from longshore.cluster.terms import PodSelector, Term, Terms

__all__ = [
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "PODS",
    "ClusterState",
    "Nodes",
    "OneNode",
    "PodInfo",
    "PodSelector",
    "Term",
    "Terms",
]
