"""Rewards as columns: the reward that pods of one type can expect on each node.

A pair of type and node that was seen has its own value. Any other pair gets the value of its node in general,
minus what the type did worse than others on the nodes where it was seen: a type that failed where everything
fails is not to blame. Where nothing is known, the best is expected.
"""

from collections import OrderedDict

import numpy as np

from longshore.agents.reward.table import BEST, Pair, Rewards, Value
from longshore.api import Node
from longshore.cluster import ClusterState
from longshore.cluster.arrays import Floats, Ints

# The most types whose columns are cached.
_MOST_KEPT = 64
_DIGITS = 1_000_000
_UNKNOWN = float("nan")


class _Column:
    """A value with its time for each row; NaN where nothing is known."""

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
    """The columns of one cluster, which must be the same in every call."""

    def __init__(self, rewards: Rewards) -> None:
        self._rewards = rewards
        self._version = self._position = -1
        self._nodes = _Column(0)
        # The recently used types.
        self._types: OrderedDict[str, _Type] = OrderedDict()

    def expected(self, type_: str, cluster: ClusterState, *, time: float) -> Floats:
        """Return the reward that a pod of the type can expect on each row."""
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
        """Return how well the type does on all nodes together."""
        known = self._rewards.at(Pair(type_, ""), time)
        return BEST if known is None else known

    def _catch_up(self, cluster: ClusterState) -> None:
        """Update the columns to the current nodes and to what has been learned since."""
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
    """The known values of a type by row, and the rows that have one."""

    def __init__(self, type_: str, rewards: Rewards, cluster: ClusterState) -> None:
        self.seen = _Column(len(cluster.known))
        rows = {node: cluster.row(node) for node in rewards.nodes_of(type_)}
        there = {node: row for node, row in rows.items() if row is not None}
        for node, row in there.items():
            self.seen.put(row, rewards.get(Pair(type_, node)))
        self.rows: Ints = np.array(list(there.values()), np.int64)


def tens(values: Floats) -> Ints:
    """Return rewards as scores: rounded to six digits, then truncated to tenths, times 100."""
    digits: Ints = np.rint(values * _DIGITS).astype(np.int64)
    return digits // (_DIGITS // 10) * 10
