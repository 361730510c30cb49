"""Builders of pods, nodes, and other objects for tests. A call reads like a sentence:

    pod("web").requests(cpu="500m", memory="1Gi").labels(app="web")
    node("n1").allocatable(cpu="4", memory="8Gi", pods="110")

A builder is itself the object: each method returns a changed copy, and every copy is a complete object. By
default, a pod is pending, has the scheduler name `longshore`, and has no requests; a node offers room for 110
pods. UIDs are derived from names, so that a test gives the same result each time.

`longshore.testing.strategies` has Hypothesis strategies for pods and nodes. Only that module needs
Hypothesis.
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
