"""Which node a pod goes to, or why none fits: a function of the pod, the cluster and the profile.

Pods are placed one after the other, and each decision starts from the cluster as the last one left it. There
is no loop over nodes here: the shape of the pod keeps most answers, and plugins answer with arrays.
"""

import msgspec
import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.engine.decision.attempt import Attempt
from longshore.engine.decision.diagnosis import Diagnosis
from longshore.engine.decision.shapes import Shapes, shape_key
from longshore.engine.decision.ties import heap_pick, pick, pick_ranked
from longshore.engine.plugin_failure import PluginFailure
from longshore.framework import Status
from longshore.framework.profile import Profile

NO_NODES = "no nodes available to schedule pods"
# With fewer nodes than this, all are examined, whatever the percentage.
_ALWAYS_EXAMINED = 100


class Placement(msgspec.Struct, frozen=True):
    """The chosen node, and what it was chosen from."""

    attempt: Attempt
    row: int
    node: str
    # How many nodes passed, and how many were as good as the chosen one; 0 if no scores were needed.
    feasible: int
    total: int = 0
    ties: int = 0


class Unplaced(msgspec.Struct, frozen=True):
    """No node fits."""

    attempt: Attempt
    diagnosis: Diagnosis


class NextStart:
    """Where the examination of nodes starts for the next pod. The profiles of a scheduler share it."""

    __slots__ = ("place",)

    def __init__(self) -> None:
        self.place = 0


class Chooser:
    """Decides for one profile. It remembers only shapes, and where to start examining nodes."""

    def __init__(
        self,
        profile: Profile,
        cluster: ClusterState,
        next_start: NextStart | None = None,
        *,
        extended: bool = False,
    ) -> None:
        """`extended`: HTTP extenders filter or rank nodes as well."""
        self.profile = profile
        # If nothing ranks nodes, kube-scheduler takes the first that fits.
        self._takes_first = profile.tie_break == "heap" and not profile.scores and not extended
        self._cluster = cluster
        self._shapes = Shapes(profile, cluster)
        self._next_start = next_start or NextStart()
        # Where the examination of the last pod began.
        self._began = 0

    @property
    def cluster(self) -> ClusterState:
        return self._cluster

    @property
    def shapes_kept(self) -> int:
        return len(self._shapes)

    def info(self, pod: Pod, key: bytes) -> PodInfo:
        """Return what the pod requests, taken over from a pod of its shape if one is known."""
        shape = self._shapes.get(key)
        return PodInfo.of(pod) if shape is None else shape.pod.about(pod)

    def attempt(self, pod: PodInfo, key: bytes | None = None) -> Attempt:
        """Begin an attempt. Raises PluginFailure."""
        return Attempt(self._shapes.find(shape_key(pod.pod) if key is None else key, pod), pod)

    def decide(self, pod: PodInfo, key: bytes | None = None) -> Placement | Unplaced | Status:
        """Return the best node, or why there is none; a status if something is wrong."""
        try:
            attempt = self.pre_filtered(pod, key)
            if not isinstance(attempt, Attempt):
                return attempt
            nominated = self.nominated(attempt)
            if nominated is not None:
                return Placement(attempt, nominated, self._cluster.node_name(nominated), 1)
            return self.choose(attempt, self.examined(attempt, attempt.feasible()))
        except PluginFailure as failure:
            return failure.status

    def pre_filtered(self, pod: PodInfo, key: bytes | None = None) -> Attempt | Unplaced | Status:
        """Begin an attempt, and return it if the pod passes PreFilter. Raises PluginFailure."""
        if self._cluster.node_count == 0:
            return Status.unresolvable(NO_NODES)
        attempt = self.attempt(pod, key)
        refusal = attempt.pre_filter()
        return attempt if refusal is None else Unplaced(attempt, attempt.diagnose(refusal))

    def nominated(self, attempt: Attempt) -> int | None:
        """Return the row of the node that the pod is nominated to, if it fits: then no other is looked at."""
        pod = attempt.pod.pod
        if not pod.status.nominated_node_name and not self._cluster.nominations:
            return None
        name = pod.status.nominated_node_name or self._cluster.nominations.node_of(pod.metadata.uid)
        row = None if name is None else self._cluster.row(name)
        if row is None or not self._cluster.known[row]:
            return None
        if attempt.narrowed is not None and not attempt.narrowed[row]:
            return None
        status = attempt.filter_with_nominated(attempt.state, OneNode(self._cluster, row))
        return row if status is None else None

    def examined(self, attempt: Attempt, left: Bools) -> Bools:
        """Return the feasible nodes that are found before there are enough: all, unless configured."""
        self._began = self._next_start.place
        percentage = self.profile.percentage_of_nodes_to_score
        some = bool(percentage) and percentage < 100
        count = self._cluster.node_count
        if attempt.narrowed is None and not self._takes_first and (not some or count < _ALWAYS_EXAMINED):
            return left
        order = self._cluster.tree.order
        if attempt.narrowed is not None:
            order = order[attempt.narrowed[order]]
        enough = seen = len(order)
        if self._takes_first:
            enough = 1
        elif some and seen >= _ALWAYS_EXAMINED:
            enough = max(seen * percentage // 100, _ALWAYS_EXAMINED)
        if enough < seen:
            order = np.roll(order, -(self._began % seen))
            places = np.flatnonzero(left[order])
            if len(places) > enough:
                # kube-scheduler stops when it finds one more than enough.
                seen = int(places[enough])
                left = np.zeros_like(left)
                left[order[places[:enough]]] = True
        self._next_start.place = (self._began + seen) % count
        return left

    def choose(self, attempt: Attempt, left: Bools) -> Placement | Unplaced:
        """Return the best of the nodes that are left. Raises PluginFailure."""
        count = attempt.shape.feasible_count
        if left is not attempt.shape.feasible:
            count = int(np.count_nonzero(left))
        if count == 0:
            return Unplaced(attempt, attempt.diagnose())
        if count == 1:
            row = int(left.argmax())
            return Placement(attempt, row, self._cluster.node_name(row), 1)
        totals, rows = attempt.totals(left)
        shape = attempt.shape
        if totals is shape.ranked and self.profile.tie_break != "heap":
            row = pick_ranked(shape, attempt.pod.pod)
            return Placement(attempt, row, self._cluster.node_name(row), count, shape.best, shape.ties)
        return self.best(attempt, totals, rows, count)

    def best(self, attempt: Attempt, totals: Ints, rows: Ints | None, count: int) -> Placement:
        most = totals.max()
        if self.profile.tie_break == "heap":
            row, ties = self._top_of_heap(totals, rows), 0
        else:
            best = np.flatnonzero(totals == most)
            tied = best if rows is None else rows[best]
            row, ties = pick(tied, attempt.pod.pod, self._cluster, self.profile), len(tied)
        return Placement(attempt, row, self._cluster.node_name(row), count, int(most), ties)

    def _top_of_heap(self, totals: Ints, rows: Ints | None) -> int:
        scores: Ints = np.full(len(self._cluster.known), -1, np.int64)
        scores[slice(None) if rows is None else rows] = totals
        order = self._cluster.tree.order
        order = np.roll(order, -(self._began % max(len(order), 1)))
        examined = order[scores[order] >= 0]
        return heap_pick(examined, scores[examined])
