"""Answers of plugins, kept for pods that are alike.

Pods with equal namespace, labels, owner and spec have the same *shape*: what a plugin of scope NODE or PODS
says about a node is the same for all of them. A shape calls the plugins once for all nodes. After that it
only catches up with the journal of changed rows, most often the one row where the last pod went. Plugins that
look at more than one node (spreading, affinity) are called for every pod.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.nominated_nodes import NominatedNodes
from longshore.engine.decision.plugin_calls import (
    OUT_OF_RANGE,
    check_size,
    declines_to_score,
    filter_one,
    pre_filter,
    raw_scores,
    refused,
    rejections,
    within_range,
)
from longshore.engine.decision.plugin_groups import PluginGroups
from longshore.engine.decision.raw_scores import RawScores
from longshore.engine.plugin_failure import PLUGIN_ERRORS, PluginFailure
from longshore.framework import MAX_SCORE, Code, CycleState, Status
from longshore.framework.profile import Profile, Slot

# The limit for the columns of all shapes together. The least recently used shapes are dropped.
MAX_BYTES = 64 * 2**20
# A pod, or a list of nodes, of more bytes is not remembered. etcd accepts pods of at most 1.5 MiB, and 5,000
# names of 200 letters are less.
LARGEST_KEPT = 2**20
# About what a row takes: ranks, masks and scores.
_ROW_BYTES = 20
# If more rows than this changed, all are computed again together rather than one by one.
_FEW = 24
# In `ranked`: the node does not fit.
REFUSED = -1

_encode = msgspec.msgpack.Encoder().encode


def shape_key(pod: Pod) -> bytes:
    meta = pod.metadata
    return _encode((meta.namespace, meta.labels, meta.owner_references, pod.spec))


class Shape:
    """What plugins of one profile say about pods of one shape."""

    def __init__(self, groups: PluginGroups, cluster: ClusterState, pod: PodInfo) -> None:
        self.pod = pod
        self.profile = groups.profile
        self.cluster = cluster
        self.memo: dict[str, Any] = {}
        # What PreFilters and PreScores of local plugins wrote. Every attempt starts with it.
        self.state = CycleState(self.memo)
        self._priority = pod.pod.spec.priority
        self._even_scores = groups.even_scores
        # The plugins that such pods concern.
        self.concerned = groups.about(pod)
        filters, scores = self.concerned.filters, self.concerned.scores
        # PreFilters to call, each with its outcome if that never changes.
        self.pre_filters: list[tuple[Any, Any]] = []
        for plugin, local in filters.pre:
            outcome = None
            if local:
                outcome = pre_filter(plugin, self.state, pod, cluster)
            if _is_skip(outcome):
                filters = filters.without(plugin.name)
            elif outcome is not None or not local:
                self.pre_filters.append((plugin, outcome))
        self.state.skip_filter = filters.skipped
        self.other_filters = filters.other
        self._node_filters = filters.of_node
        self._pod_filters = filters.of_pods

        self.pre_scores: list[Any] = []
        for plugin, local in scores.pre:
            if not local:
                self.pre_scores.append(plugin)
            elif declines_to_score(plugin, self.state, pod, cluster.all_nodes()):
                scores = scores.without(plugin.name)
        self.state.skip_score = scores.skipped
        self.local_scores = scores.summed
        self.normalized_scores = scores.normalized
        self.other_scores = scores.other

        self._position = -1
        # The nodes that passed the filters of scope NODE, and those that passed all local filters.
        self._suitable: Bools = np.zeros(0, np.bool_)
        self.feasible: Bools = np.zeros(0, np.bool_)
        self.feasible_count = 0
        # The weighted sum of the local scores that need no normalization; REFUSED if the node does not fit.
        self.ranked: Ints = np.zeros(0, np.int64)
        # The largest number in `ranked`, and how many rows have it.
        self.best = REFUSED
        self.ties = 0
        # The scores that it is the sum of, without weights: for the record of a decision.
        self.parts: list[bytearray] = []
        # Scores before normalization, over all rows.
        self.raw: list[RawScores] = []
        # Scores of other plugins that were the same for all nodes in the last decision, for the next record.
        self.constant: Sequence[tuple[Slot, int]] = ()
        # The normalized, weighted scores of plugins in `raw` that score all rows the same; None if unknown.
        self.even: Sequence[tuple[str, int]] | None = None

    @property
    def raw_is_even(self) -> bool:
        return all(raw.even for raw in self.raw)

    @property
    def is_built(self) -> bool:
        return self._position >= 0

    def refresh(self) -> None:
        """Catch up with the cluster. If a plugin fails, all answers are dropped."""
        journal = self.cluster.journal
        position = journal.position
        if position == self._position:
            return
        rows = journal.rows_since(self._position, at_most=_FEW)
        self._position = -1
        if rows is None:
            self._build()
        else:
            for row, node_changed in rows.items():
                self._update(row, node_changed=node_changed)
        self._position = position

    def _build(self) -> None:
        cluster, nodes = self.cluster, self.cluster.all_nodes()
        size = len(cluster.known)
        self._suitable = cluster.known.copy()
        for slot in self._node_filters:
            self._strike(self._suitable, slot, nodes)
        feasible = self._suitable.copy()
        for slot in self._pod_filters:
            self._strike(feasible, slot, nodes)
        if cluster.nominations:
            with_nominated = NominatedNodes(cluster, self.pod)
            for slot in self._pod_filters:
                left = feasible[with_nominated.rows]
                bad = refused(rejections(slot, self.state, self.pod, with_nominated, left), len(left))
                feasible[with_nominated.rows] = left & ~bad
        self.feasible = feasible
        self.feasible_count = int(np.count_nonzero(feasible))
        ranked = np.zeros(size, np.int64)
        self.parts = []
        for slot in self.local_scores:
            scores = self._local_score(slot, nodes)
            ranked += scores if slot.weight == 1 else scores * slot.weight
            self.parts.append(_as_bytes(scores, size))
        if self.feasible_count < size:
            ranked[~feasible] = REFUSED
        self.ranked = ranked
        self._find_best()
        self.raw = [RawScores(slot, self._scores(slot, nodes)) for slot in self.normalized_scores]
        self.even = None

    def _strike(self, left: Bools, slot: Slot, nodes: Nodes) -> None:
        """Remove what the filter refuses, which most often is nothing."""
        if found := rejections(slot, self.state, self.pod, nodes, left):
            left &= ~refused(found, len(left))

    def _local_score(self, slot: Slot, nodes: Nodes) -> Ints | int:
        """Check the range only for feasible nodes: the others may have any score."""
        scores = self._scores(slot, nodes)
        if not within_range(scores) and (isinstance(scores, int) or not within_range(scores[self.feasible])):
            raise PluginFailure(slot.name, "Score", OUT_OF_RANGE)
        return scores

    def _scores(self, slot: Slot, nodes: Nodes) -> Ints | int:
        scores = raw_scores(slot, self.state, self.pod, nodes)
        if not isinstance(scores, int):
            check_size(slot, scores, len(self.feasible))
        return scores

    def _update(self, row: int, *, node_changed: bool) -> None:
        cluster = self.cluster
        fits = False
        rank = REFUSED
        if node_changed:
            self._suitable[row] = cluster.known[row] and self._suits(cluster.one_node(row))
        if self._suitable[row]:
            node = cluster.one_node(row)
            fits = self._fits(node) and (not cluster.nominations or self._fits_with_nominated(row))
        if fits:
            rank = 0
            for slot, part in zip(self.local_scores, self.parts, strict=True):
                score = self._score_one(slot, node)
                if not 0 <= score <= MAX_SCORE:
                    raise PluginFailure(slot.name, "Score", OUT_OF_RANGE)
                rank += score * slot.weight
                part[row] = score
        self._rank(row, rank)
        self.feasible_count += fits - bool(self.feasible[row])
        self.feasible[row] = fits
        if self.raw:
            self._update_raw(row, node_changed=node_changed)

    def _rank(self, row: int, rank: int) -> None:
        self.ties += (rank == self.best) - bool(self.ranked[row] == self.best)
        self.ranked[row] = rank
        if rank > self.best:
            self.best, self.ties = rank, 1
        elif not self.ties:
            self._find_best()

    def _find_best(self) -> None:
        self.best = int(self.ranked.max(initial=REFUSED))
        self.ties = int(np.count_nonzero(self.ranked == self.best))

    def _update_raw(self, row: int, *, node_changed: bool) -> None:
        moved = [raw for raw in self.raw if node_changed or raw.slot.counts_pods]
        if moved and self.cluster.known[row]:
            self.even = None
            node = self.cluster.one_node(row)
            for raw in moved:
                raw.put(row, self._score_one(raw.slot, node), len(self.ranked))

    def find_even(self) -> None:
        """Compute `even`. Raises PluginFailure."""
        weighted = self._even_scores.weighted
        self.even = [
            (raw.slot.name, weighted(raw, self.state, self.pod, self.cluster)) for raw in self.raw if raw.even
        ]

    def _suits(self, node: OneNode) -> bool:
        """Whether the node passes the filters of scope NODE."""
        return all(filter_one(slot, self.state, self.pod, node) is None for slot in self._node_filters)

    def _fits(self, node: OneNode) -> bool:
        """Whether the node passes the filters of scope PODS."""
        state, pod = self.state, self.pod
        for slot in self._pod_filters:
            try:
                for rejection in slot.plugin.filter(state, pod, node) or ():
                    if rejection.where:
                        return False
            except PLUGIN_ERRORS as error:  # a plugin's mistake fails only this attempt
                raise PluginFailure(slot.name, "filter", repr(error)) from error
        return True

    def _score_one(self, slot: Slot, node: OneNode) -> int:
        try:
            score = slot.plugin.score(self.state, self.pod, node if slot.counts_pods else node.as_nodes())
            return int(score) if slot.counts_pods else int(np.max(score))
        except PLUGIN_ERRORS as error:  # as above
            raise PluginFailure(slot.name, "Score", repr(error)) from error

    def _fits_with_nominated(self, row: int) -> bool:
        """Whether the pod fits next to the nominated pods of equal or higher priority.

        The pod itself may be one of them: an attempt checks its nominated node separately, before all others.
        """
        nominated = [
            info
            for info in self.cluster.nominations.on(self.cluster.node_name(row))
            if info.pod.spec.priority >= self._priority
        ]
        if not nominated:
            return True
        node = self.cluster.one_node(row)
        for info in nominated:
            node.add(info)
        return self._fits(node)


class Shapes:
    """The shapes of one profile that were used last, up to a limit of memory."""

    def __init__(self, profile: Profile, cluster: ClusterState) -> None:
        self._groups = PluginGroups(profile)
        self._cluster = cluster
        self._shapes: OrderedDict[bytes, Shape] = OrderedDict()

    def __len__(self) -> int:
        return len(self._shapes)

    def get(self, key: bytes) -> Shape | None:
        return self._shapes.get(key)

    def find(self, key: bytes, pod: PodInfo) -> Shape:
        """Return the shape of the pod, and make it the most recently used."""
        shape = self._shapes.get(key)
        if shape is None:
            shape = Shape(self._groups, self._cluster, pod)
            if len(key) <= LARGEST_KEPT:
                self._shapes[key] = shape
                self._make_room()
        else:
            self._shapes.move_to_end(key)
        return shape

    def _make_room(self) -> None:
        most = max(16, MAX_BYTES // (_ROW_BYTES * max(1, len(self._cluster.known))))
        while len(self._shapes) > most:
            self._shapes.popitem(last=False)


def _as_bytes(scores: Ints | int, size: int) -> bytearray:
    """Scores are at most 100, and a bytearray reads and writes single numbers faster than an array."""
    return bytearray(np.full(size, scores, np.uint8) if isinstance(scores, int) else scores.astype(np.uint8))


def _is_skip(outcome: Any) -> bool:
    return isinstance(outcome, Status) and outcome.code is Code.SKIP
