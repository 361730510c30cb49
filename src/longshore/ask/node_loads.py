"""How full the nodes are: as they are, and with the pods of a plan on them."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from longshore.cluster import CPU, MEMORY, PODS, ClusterState, PodInfo


class Amounts(msgspec.Struct, frozen=True):
    """Pods, millicores and bytes."""

    pods: int
    cpu: int
    memory: int


class NodeLoad(msgspec.Struct, frozen=True):
    name: str
    allocatable: Amounts
    # What is asked for by the pods that are there, and together with those that are to come.
    now: Amounts
    planned: Amounts


def node_loads(cluster: ClusterState, coming: Iterable[tuple[PodInfo, str]]) -> tuple[NodeLoad, ...]:
    """Of all nodes, by name; `coming` are pods without a node yet. The cluster is as before afterwards."""
    now = _requested(cluster)
    placed = []
    try:
        for info, node in coming:
            if node in now:
                placed.append(info.pod)
                cluster.assume(info, node)
        planned = _requested(cluster)
    finally:
        for pod in placed:
            cluster.forget(pod)
    return tuple(
        NodeLoad(name, _amounts(cluster.allocatable, cluster, name), now[name], planned[name])
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
