"""Room on the node: enough of every resource for the pod, and the emptier node is the better one."""

import numpy as np

from longshore.cluster import CPU, MEMORY, ClusterState, PodInfo
from longshore.cluster.state import Bools, Ints
from longshore.framework import MAX_SCORE, Verdict

NAME = "NodeResourcesFit"
REASON_TOO_MANY_PODS = "Too many pods"
REASON_INSUFFICIENT = "Insufficient {resource}"

_SCORED = (CPU, MEMORY)


class NodeResourcesFit:
    """Filter: what the pod asks for is free. Score: the share that stays free (LeastAllocated)."""

    name = NAME

    def filter(self, pod: PodInfo, cluster: ClusterState) -> Verdict:
        allocatable, requested = cluster.allocatable, cluster.requested
        short: Bools = np.zeros(len(cluster.known), np.bool_)
        reasons: dict[str, Bools] = {}
        for resource, amount in pod.requests.items():
            column = cluster.column(resource)
            # Written so that a node which holds more than it offers is short of the resource as well.
            lacking = (
                np.ones_like(short) if column is None else amount > allocatable[column] - requested[column]
            )
            reasons[_reason(resource)] = lacking
            short |= lacking
        return Verdict(~short, reasons)

    def score(self, pod: PodInfo, cluster: ClusterState) -> Ints:
        rows = len(cluster.known)
        total: Ints = np.zeros(rows, np.int64)
        offered: Ints = np.zeros(rows, np.int64)
        for place, column in enumerate(_SCORED):
            capacity = cluster.allocatable[column]
            use = cluster.nonzero_requested[place] + pod.nonzero_incoming[place]
            # Without capacity the first factor is 0 already; the divisor only must not be.
            total += np.maximum(capacity - use, 0) * MAX_SCORE // np.maximum(capacity, 1)
            offered += capacity > 0
        return total // np.maximum(offered, 1)


def _reason(resource: str) -> str:
    return REASON_TOO_MANY_PODS if resource == "pods" else REASON_INSUFFICIENT.format(resource=resource)
