"""The state of the cluster as columns.

Nodes are rows of numpy arrays and resources are columns, so a question about all nodes is a few array
operations, and a change of one pod touches one row:

    state = ClusterState()
    state.add_node(node)
    state.add_pod(bound_pod)
    free_cpu = state.allocatable[CPU] - state.requested[CPU]    # millicores, one number for each row
"""

from longshore.cluster.podinfo import PodInfo
from longshore.cluster.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from longshore.cluster.state import ClusterState

__all__ = ["CPU", "EPHEMERAL_STORAGE", "MEMORY", "PODS", "ClusterState", "PodInfo"]
