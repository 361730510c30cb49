"""Which of equally good nodes a pod goes to."""

import hashlib

import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState
from longshore.cluster.arrays import Ints
from longshore.framework.profile import Profile


def pick(rows: Ints, pod: Pod, cluster: ClusterState, profile: Profile) -> int:
    """One of equally good rows, the same one whatever rows the nodes happen to be in.

    `first` takes the first node by name. `random` gives every pair of pod and node a number that depends on
    the seed, the pod's UID and the node's name alone, and takes the lowest: evenly spread over many pods,
    independent of what was decided before, and another node that joins or leaves the tie changes the choice
    only if it is, or was, the chosen one.
    """
    if len(rows) == 1:
        return int(rows[0])
    if profile.tie_break == "first":
        return int(rows[cluster.name_rank[rows].argmin()])
    # An odd factor shuffles the 64-bit numbers of the names, each factor in its own way.
    return int(rows[(cluster.name_hash[rows] * np.uint64(_salt(pod, profile.seed) | 1)).argmin()])


def _salt(pod: Pod, seed: int) -> int:
    identity = f"{seed}/{pod.metadata.uid or pod.key}"
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little")


def heap_pick(rows: Ints, totals: Ints) -> int:
    """What kube-scheduler 1.36 takes: the top of Go's heap, made of all nodes in the order of examination.

    Ties are not broken there on purpose; how the heap is put in order decides.
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
