"""Which node a pod goes to: the filters, the scores and the choice among equals.

A pure function of the pod, the cluster and the profile. There is no loop over nodes here: plugins answer with
arrays, and a plugin that raises or answers nonsense fails this one attempt under its name.
"""

import hashlib

import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.state import Bools, Hashes, Ints
from longshore.framework import MAX_SCORE, Code, Filter, Profile, Status, Verdict, WeightedScore

NO_NODES = "no nodes available to schedule pods"


def decide(pod: PodInfo, cluster: ClusterState, profile: Profile) -> str | Status:
    """The name of the best node, or why there is none."""
    if cluster.node_count == 0:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (NO_NODES,))
    feasible = _feasible(pod, cluster, profile)
    if isinstance(feasible, Status):
        return feasible
    rows = np.flatnonzero(feasible)
    if len(rows) > 1:
        totals = _totals(pod, cluster, profile, feasible)
        if isinstance(totals, Status):
            return totals
        totals = totals[rows]
        rows = rows[totals == totals.max()]
    return cluster.node_name(_pick(rows, pod.pod, cluster, profile))


def _feasible(pod: PodInfo, cluster: ClusterState, profile: Profile) -> Bools | Status:
    left = cluster.known.copy()
    counts: dict[str, int] = {}
    for plugin in profile.filters:
        verdict = _verdict(plugin, pod, cluster)
        if isinstance(verdict, Status):
            return verdict
        rejected = left & ~verdict.feasible
        if not rejected.any():
            continue
        for reason, rows in verdict.reasons.items():
            counts[reason] = counts.get(reason, 0) + int(np.count_nonzero(rows & rejected))
        left &= verdict.feasible
        if not left.any():
            histogram = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items() if number))
            message = f"0/{cluster.node_count} nodes are available: {histogram}."
            return Status(Code.UNSCHEDULABLE, (message,), plugin.name)
    return left


def _verdict(plugin: Filter, pod: PodInfo, cluster: ClusterState) -> Verdict | Status:
    try:
        verdict = plugin.filter(pod, cluster)
        expected = cluster.known.shape
        if any(
            a.shape != expected or a.dtype != np.bool_ for a in (verdict.feasible, *verdict.reasons.values())
        ):
            return _error(plugin.name, "filter", "the answer is not one truth value for each row")
    except Exception as error:  # whatever a plugin does, only this attempt fails
        return _error(plugin.name, "filter", repr(error))
    return verdict


def _totals(pod: PodInfo, cluster: ClusterState, profile: Profile, feasible: Bools) -> Ints | Status:
    totals: Ints = np.zeros(len(feasible), np.int64)
    for weighted in profile.scores:
        scores = _scores(weighted, pod, cluster, feasible)
        if isinstance(scores, Status):
            return scores
        totals += scores * weighted.weight
    return totals


def _scores(weighted: WeightedScore, pod: PodInfo, cluster: ClusterState, feasible: Bools) -> Ints | Status:
    plugin = weighted.plugin
    try:
        scores = plugin.score(pod, cluster)
        if scores.shape != feasible.shape or scores.dtype != np.int64:
            return _error(plugin.name, "score", "the answer is not one whole number for each row")
        # As unsigned numbers the negative ones are too large as well: one comparison does for both ends.
        if (feasible & (scores.view(np.uint64) > MAX_SCORE)).any():
            return _error(plugin.name, "score", f"a score is not within 0 and {MAX_SCORE}")
    except Exception as error:  # as above
        return _error(plugin.name, "score", repr(error))
    return scores


def _error(plugin: str, point: str, what: str) -> Status:
    return Status(Code.ERROR, (f'running "{plugin}" {point} plugin: {what}',), plugin)


def _pick(rows: Ints, pod: Pod, cluster: ClusterState, profile: Profile) -> int:
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
    identity = f"{profile.seed}/{pod.metadata.uid or pod.key}"
    salt = int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little")
    return int(rows[_mixed(cluster.name_hash[rows] ^ np.uint64(salt)).argmin()])


def _mixed(numbers: Hashes) -> Hashes:
    """Spread the numbers over 64 bits (the last steps of the splitmix64 generator)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
