"""Pods, nodes and other objects for tests, written as a sentence:

    pod("web").requests(cpu="500m", memory="1Gi").labels(app="web")
    node("n1").allocatable(cpu="4", memory="8Gi", pods="110")

Builders are what they build: each method returns a changed copy, and every copy is a whole object. A pod is
pending, meant for the scheduler `longshore`, and without requests unless it is told otherwise; a node offers
room for 110 pods. UIDs follow from the names, so that a test gives the same result each time.

`longshore.testing.strategies` has Hypothesis strategies for pods and nodes; Hypothesis itself is needed only
there.
"""

from longshore.testing.nodes import NodeBuilder, node
from longshore.testing.pods import PodBuilder, pod
from longshore.testing.storage import csi_node, pv, pvc, storage_class
from longshore.testing.workloads import (
    namespace,
    pdb,
    replica_set,
    replication_controller,
    service,
    stateful_set,
)

__all__ = [
    "NodeBuilder",
    "PodBuilder",
    "csi_node",
    "namespace",
    "node",
    "pdb",
    "pod",
    "pv",
    "pvc",
    "replica_set",
    "replication_controller",
    "service",
    "stateful_set",
    "storage_class",
]
