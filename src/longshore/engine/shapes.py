"""Answers kept for pods that are alike.

Pods with equal namespace, labels, owner and spec have one *shape*: whatever a plugin of scope NODE or PODS
says about a node is the same for all of them. A shape asks once for all nodes, and from then on catches up
with the journal of changed rows before it is used, most often the one row where the last pod went. What
depends on more than one node (spreading, affinity) is asked each time, on top of it.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Any

import msgspec
import numpy as np

from longshore.api import Pod
from longshore.cluster import ClusterState, Nodes, OneNode, PodInfo
from longshore.cluster.arrays import Bools, Ints
from longshore.engine.asking import filter_one, final_scores, raw_scores, refused, rejections
from longshore.engine.failure import PluginFailure
from longshore.framework import MAX_SCORE, Code, CycleState, Status
from longshore.framework.profile import Profile, Slot

# Columns kept of all shapes together; the least recently used go.
MAX_BYTES = 64 * 2**20
# More changed rows than this are looked at together rather than one by one.
_FEW = 24
# In `ranked`: no pod can go there.
REFUSED = -1

_encode = msgspec.msgpack.Encoder().encode


def shape_key(pod: Pod) -> bytes:
    meta = pod.metadata
    return _encode((meta.namespace, meta.labels, meta.owner_references, pod.spec))


class Shape:
    """What is known about pods of one shape in one profile."""

    def __init__(self, profile: Profile, cluster: ClusterState, pod: PodInfo) -> None:
        self.pod = pod
        self.profile = profile
        self.cluster = cluster
        self.memo: dict[str, Any] = {}
        # What PreFilters and PreScores of local plugins wrote, for every attempt to begin with.
        self.state = CycleState(self.memo)
        self._priority = pod.pod.spec.priority
        # PreFilters to call, each with its outcome if that is known for good.
        self.pre_filters: list[tuple[Any, Any]] = []
        local = {slot.name for slot in profile.filters if slot.local}
        skipped = {slot.name for slot in profile.filters if not slot.concerns(pod)}
        for plugin in profile.pre_filters:
            if plugin.name in skipped:
                continue
            outcome = (
                _call(plugin, "PreFilter", plugin.pre_filter, self.state, pod, cluster)
                if plugin.name in local
                else None
            )
            if _is_skip(outcome):
                skipped.add(plugin.name)
            elif outcome is not None or plugin.name not in local:
                self.pre_filters.append((plugin, outcome))
        self.state.skip_filter = skipped
        asked = [slot for slot in profile.filters if slot.name not in skipped]
        # Plain ones last: they are asked about what the others have left.
        self.other_filters = tuple(sorted((s for s in asked if not s.local), key=lambda s: s.plain))
        self._node_filters = tuple(slot for slot in asked if slot.local and not slot.counts_pods)
        self._pod_filters = tuple(slot for slot in asked if slot.counts_pods)

        self.pre_scores: list[Any] = []
        local = {slot.name for slot in profile.scores if slot.local}
        skipped = {slot.name for slot in profile.scores if not slot.concerns(pod)}
        for scorer in profile.pre_scores:
            if scorer.name in skipped:
                continue
            if scorer.name not in local:
                self.pre_scores.append(scorer)
            elif _is_skip(_call(scorer, "PreScore", scorer.pre_score, self.state, pod, cluster.all_nodes())):
                skipped.add(scorer.name)
        self.state.skip_score = skipped
        scored = [slot for slot in profile.scores if slot.name not in skipped]
        self.local_scores = tuple(slot for slot in scored if slot.local and not slot.normalizes)
        self.normalized_scores = tuple(slot for slot in scored if slot.local and slot.normalizes)
        self.other_scores = tuple(slot for slot in scored if not slot.local)

        self._position = -1
        # Passed the filters that look at the node alone; passed all local ones.
        self._suitable: Bools = np.zeros(0, np.bool_)
        self.feasible: Bools = np.zeros(0, np.bool_)
        self.feasible_count = 0
        # The weighted sum of the local scores that need no normalisation.
        self.base: Ints = np.zeros(0, np.int64)
        # `base` where the pod can go, REFUSED elsewhere.
        self.ranked: Ints = np.zeros(0, np.int64)
        # Scores still to be normalised, over all rows, by plugin.
        self.raw: dict[str, Ints] = {}
        # Whether all of those are the same on all nodes, so that they decide nothing.
        self.raw_is_even = True

    @property
    def is_built(self) -> bool:
        return self._position >= 0

    def refresh(self) -> None:
        """Catch up with the cluster. If a plugin fails, nothing is kept."""
        journal = self.cluster.journal
        position = journal.position
        if position == self._position:
            return
        changes = journal.since(self._position) if self.is_built else None
        self._position = -1
        if changes is None or len(changes) > _FEW:
            self._build()
        elif len(changes) == 1 and changes[0] >= 0:
            self._update(changes[0], node_changed=False)
        else:
            rows: dict[int, bool] = {}
            for change in changes:
                rows[max(change, ~change)] = change < 0 or rows.get(change, False)
            for row, node_changed in rows.items():
                self._update(row, node_changed=node_changed)
        self._position = position

    def _build(self) -> None:
        cluster, nodes = self.cluster, self.cluster.all_nodes()
        size = len(cluster.known)
        self._suitable = cluster.known.copy()
        for slot in self._node_filters:
            self._suitable &= ~refused(rejections(slot, self.state, self.pod, nodes, self._suitable), size)
        feasible = self._suitable.copy()
        for slot in self._pod_filters:
            feasible &= ~refused(rejections(slot, self.state, self.pod, nodes, feasible), size)
        for row in self._nominated_rows():
            feasible[row] = feasible[row] and self._fits_beside_nominated(row)
        self.feasible = feasible
        self.feasible_count = int(np.count_nonzero(feasible))
        base = np.zeros(size, np.int64)
        for slot in self.local_scores:
            base += self._local_score(slot, nodes) * slot.weight
        self.base = base
        self.ranked = np.where(feasible, base, REFUSED)
        for slot in self.normalized_scores:
            self.raw[slot.name] = np.zeros(size, np.int64) + raw_scores(slot, self.state, self.pod, nodes)
        self._find_even()

    def _local_score(self, slot: Slot, nodes: Nodes) -> Ints | int:
        """The range is looked at where it counts: rows that do not matter may have any score."""
        scores = raw_scores(slot, self.state, self.pod, nodes)
        counting = scores if isinstance(scores, int) else scores[self.feasible]
        final_scores(slot, self.state, self.pod, counting, nodes, self.feasible_count)
        return scores

    def _update(self, row: int, *, node_changed: bool) -> None:
        cluster = self.cluster
        fits = False
        if node_changed:
            self._suitable[row] = cluster.known[row] and self._suits(cluster.one_node(row))
        if self._suitable[row]:
            node = cluster.one_node(row)
            fits = self._fits(node) and (not cluster.nominations or self._fits_beside_nominated(row))
        if fits:
            total = 0
            for slot in self.local_scores:
                score = self._score_one(slot, node)
                if not 0 <= score <= MAX_SCORE:
                    raise PluginFailure(slot.name, "Score", f"a score is not within 0 and {MAX_SCORE}")
                total += score * slot.weight
            self.base[row] = self.ranked[row] = total
        else:
            self.ranked[row] = REFUSED
        self.feasible_count += fits - bool(self.feasible[row])
        self.feasible[row] = fits
        if self.raw:
            self._update_raw(row, node_changed=node_changed)

    def _update_raw(self, row: int, *, node_changed: bool) -> None:
        moved = [slot for slot in self.normalized_scores if node_changed or slot.counts_pods]
        if moved and self.cluster.known[row]:
            node = self.cluster.one_node(row)
            for slot in moved:
                self.raw[slot.name][row] = self._score_one(slot, node)
            self._find_even()

    def _suits(self, node: OneNode) -> bool:
        """Whether the filters that look at the node alone let the pod in."""
        return all(filter_one(slot, self.state, self.pod, node) is None for slot in self._node_filters)

    def _fits(self, node: OneNode) -> bool:
        """Whether the filters that count the pods on it let the pod in."""
        state, pod = self.state, self.pod
        for slot in self._pod_filters:
            try:
                for rejection in slot.plugin.filter(state, pod, node):
                    if rejection.where:
                        return False
            except Exception as error:  # whatever a plugin does, only this attempt fails
                raise PluginFailure(slot.name, "filter", repr(error)) from error
        return True

    def _score_one(self, slot: Slot, node: OneNode) -> int:
        try:
            score = slot.plugin.score(self.state, self.pod, node if slot.counts_pods else node.as_nodes())
            return int(score) if slot.counts_pods else int(np.max(score))
        except Exception as error:  # as above
            raise PluginFailure(slot.name, "Score", repr(error)) from error

    def _nominated_rows(self) -> Collection[int]:
        rows = (self.cluster.row(node) for node in self.cluster.nominations.nodes())
        return [row for row in rows if row is not None]

    def _fits_beside_nominated(self, row: int) -> bool:
        """Whether the pod fits with the pods that were promised the node, as far as they come before it.

        The pod itself may be one of them: an attempt looks at its own node by itself, before all others.
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

    def _find_even(self) -> None:
        known = self.cluster.known
        self.raw_is_even = not known.any() or all(np.ptp(scores[known]) == 0 for scores in self.raw.values())


class Shapes:
    """The shapes of one profile: those that had several pods, within a limit of memory."""

    def __init__(self, profile: Profile, cluster: ClusterState) -> None:
        self._profile = profile
        self._cluster = cluster
        self._shapes: OrderedDict[bytes, Shape] = OrderedDict()

    def find(self, key: bytes, pod: PodInfo) -> Shape:
        """The shape of the pod, most recently used from now on."""
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(self._profile, self._cluster, pod)
            self._make_room()
        else:
            self._shapes.move_to_end(key)
        return shape

    def _make_room(self) -> None:
        most = max(16, MAX_BYTES // (17 * max(1, len(self._cluster.known))))
        while len(self._shapes) > most:
            self._shapes.popitem(last=False)


def _is_skip(outcome: Any) -> bool:
    return isinstance(outcome, Status) and outcome.code is Code.SKIP


def _call(plugin: Any, point: str, method: Callable[..., Any], *args: Any) -> Any:
    try:
        return method(*args)
    except Exception as error:  # as above
        raise PluginFailure(plugin.name, point, repr(error)) from error
