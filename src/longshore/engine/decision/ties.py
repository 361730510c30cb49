"""Chooses among equally good nodes."""

import hashlib

import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState
from longshore.cluster.arrays import Ints
from longshore.engine.decision.shapes import Shape
from longshore.framework.profile import Profile

# This many rows are searched first: if many nodes are equal, one is found soon.
_GLANCE = 256


def pick(rows: Ints, pod: Pod, cluster: ClusterState, profile: Profile) -> int:
    """Return one of equally good rows, which are in order.

    `first` takes the first node by name. `random` takes one by a hash of the seed and the pod's UID: that
    spreads pods over the nodes, and the same events give the same choice.
    """
    if len(rows) == 1:
        return int(rows[0])
    if profile.tie_break == "first":
        return int(rows[cluster.name_rank[rows].argmin()])
    return int(rows[_hash(pod, profile.seed) % len(rows)])


def pick_ranked(shape: Shape, pod: Pod) -> int:
    """Return one of the best rows of a shape. If there are many of them, it does not list them all."""
    cluster, profile = shape.cluster, shape.profile
    if profile.tie_break == "random" and shape.ties * _GLANCE > len(shape.ranked):
        start = _hash(pod, profile.seed) % len(shape.ranked)
        glance = shape.ranked[start : start + _GLANCE] == shape.best
        place = int(glance.argmax())
        if glance[place]:
            return start + place
    return pick(np.flatnonzero(shape.ranked == shape.best), pod, cluster, profile)


def _hash(pod: Pod, seed: int) -> int:
    identity = f"{seed}/{pod.metadata.uid or pod.key}"
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little")


def heap_pick(rows: Ints, totals: Ints) -> int:
    """Return the row that kube-scheduler 1.36 takes: the top of Go's heap, built in the order of examination.

    kube-scheduler does not break ties on purpose: they depend on how the heap is built.
    """
    heap: list[tuple[int, int]] = list(zip(totals.tolist(), rows.tolist(), strict=True))
    for start in range(len(heap) // 2 - 1, -1, -1):
        parent = start
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][0] > heap[child][0]:
                child += 1
            if heap[child][0] <= heap[parent][0]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0][1]
