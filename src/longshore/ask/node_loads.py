"""The load of each node, now and with the pods of a plan on it."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from longshore.cluster import CPU, MEMORY, PODS, ClusterState, PodInfo


class Amounts(msgspec.Struct, frozen=True):
    """Amounts of pods, of cpu in millicores and of memory in bytes."""

    pods: int
    cpu: int
    memory: int


class NodeLoad(msgspec.Struct, frozen=True):
    name: str
    allocatable: Amounts
    # Requests of the pods on the node, and together with those of the planned pods.
    now: Amounts
    planned: Amounts


def node_loads(cluster: ClusterState, planned: Iterable[tuple[PodInfo, str]]) -> tuple[NodeLoad, ...]:
    """Return the loads of all nodes, sorted by name. The cluster is unchanged afterwards.

    `planned` are pods without a node, and the nodes that they are planned on.
    """
    now = _requested(cluster)
    placed = []
    try:
        for info, node in planned:
            if node in now:
                placed.append(info.pod)
                cluster.assume(info, node)
        after = _requested(cluster)
    finally:
        for pod in placed:
            cluster.forget(pod)
    return tuple(
        NodeLoad(name, _amounts(cluster.allocatable, cluster, name), now[name], after[name])
        for name in sorted(now)
    )


def _requested(cluster: ClusterState) -> Mapping[str, Amounts]:
    rows = np.flatnonzero(cluster.known).tolist()
    return {name: _amounts(cluster.requested, cluster, name) for name in map(cluster.node_name, rows)}


def _amounts(
    columns: np.ndarray[tuple[int, int], np.dtype[np.int64]], cluster: ClusterState, node: str
) -> Amounts:
    row = cluster.row(node)
    return Amounts(*(int(columns[column, row]) for column in (PODS, CPU, MEMORY)))
