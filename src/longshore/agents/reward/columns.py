"""Rewards as columns: for pods of one type, what is to be expected of them on each node.

A pair of type and node that has been seen has its own value. Any other is expected to do as its node does in
general, less what the type did worse than all others on the nodes where it was seen: a type that failed where
everything fails is not to blame. Of what is not known at all only the best is expected.
"""

from collections import OrderedDict

import numpy as np

from longshore.agents.reward.table import BEST, Pair, Rewards, Value
from longshore.api import Node
from longshore.cluster import ClusterState
from longshore.cluster.arrays import Floats, Ints

# Types whose columns are kept.
_MOST_KEPT = 64
_DIGITS = 1_000_000
_UNKNOWN = float("nan")


class _Column:
    """A value and its time for each of some things; NaN where nothing is known."""

    def __init__(self, size: int) -> None:
        self._values: Floats = np.full(size, _UNKNOWN)
        self._times: Floats = np.zeros(size)

    def put(self, place: int, value: Value | None) -> None:
        self._values[place], self._times[place] = (_UNKNOWN, 0.0) if value is None else value

    def at(self, time: float, half_life: float) -> Floats:
        if not half_life:
            return self._values
        age = np.maximum(time - self._times, 0.0)
        return BEST - (BEST - self._values) * np.exp2(-age / half_life)


class RewardColumns:
    """Of one cluster: the same one is to be given each time."""

    def __init__(self, rewards: Rewards) -> None:
        self._rewards = rewards
        self._version = self._position = -1
        self._nodes = _Column(0)
        # Those that were asked about lately.
        self._types: OrderedDict[str, _Type] = OrderedDict()

    def expected(self, type_: str, cluster: ClusterState, *, time: float) -> Floats:
        """The reward that a pod of the type can expect on each row."""
        self._catch_up(cluster)
        half_life = self._rewards.half_life
        about = self._of(type_, cluster)
        by_node = self._nodes.at(time, half_life)
        by_node = np.where(np.isnan(by_node), BEST, by_node)
        seen = about.seen.at(time, half_life)
        excess = seen[about.rows] - by_node[about.rows]
        average = float(excess.mean()) if len(excess) else self._in_general(type_, time) - BEST
        return np.where(np.isnan(seen), np.clip(by_node + average, 0.0, BEST), seen)

    def _in_general(self, type_: str, time: float) -> float:
        """How the type does, wherever that was."""
        known = self._rewards.at(Pair(type_, ""), time)
        return BEST if known is None else known

    def _catch_up(self, cluster: ClusterState) -> None:
        """With the nodes that there are, and with what has been learnt since."""
        rewards = self._rewards
        changed = rewards.since(self._position)
        version = cluster.version(Node)
        if version != self._version or changed is None:
            self._version = version
            self._types.clear()
            self._nodes = _Column(len(cluster.known))
            changed = [pair for pair, _ in rewards if not pair.type]
        self._position = rewards.position
        for pair in changed:
            row = cluster.row(pair.node) if pair.node else None
            if not pair.type and row is not None:
                self._nodes.put(row, rewards.get(pair))
            elif pair.type:
                self._types.pop(pair.type, None)

    def _of(self, type_: str, cluster: ClusterState) -> "_Type":
        found = self._types.get(type_)
        if found is None:
            found = self._types[type_] = _Type(type_, self._rewards, cluster)
            if len(self._types) > _MOST_KEPT:
                self._types.popitem(last=False)
        self._types.move_to_end(type_)
        return found


class _Type:
    """What is known of a type on each row, and on which rows that is anything."""

    def __init__(self, type_: str, rewards: Rewards, cluster: ClusterState) -> None:
        self.seen = _Column(len(cluster.known))
        rows = {node: cluster.row(node) for node in rewards.nodes_of(type_)}
        there = {node: row for node, row in rows.items() if row is not None}
        for node, row in there.items():
            self.seen.put(row, rewards.get(Pair(type_, node)))
        self.rows: Ints = np.array(list(there.values()), np.int64)


def tens(values: Floats) -> Ints:
    """Rewards as scores: the tenths, cut off after the sixth digit has been rounded, times ten."""
    digits: Ints = np.rint(values * _DIGITS).astype(np.int64)
    return digits // (_DIGITS // 10) * 10
