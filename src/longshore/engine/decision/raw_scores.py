"""The scores of one plugin before they are normalized: a single number as long as all nodes have the same."""

import numpy as np

from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.arrays import Ints
from longshore.engine.decision.plugin_calls import final_scores
from longshore.framework import CycleState
from longshore.framework.profile import Slot

_MOST_KEPT = 1000


class RawScores:
    __slots__ = ("_column", "_same", "slot")

    def __init__(self, slot: Slot, scores: Ints | int) -> None:
        self.slot = slot
        self._same = scores if isinstance(scores, int) else int(scores[0]) if len(scores) else 0
        self._column: Ints | None = None
        if not isinstance(scores, int) and len(scores) and scores.max() != scores.min():
            # A copy, because the plugin may change its array later.
            self._column = scores.copy()

    @property
    def same(self) -> int:
        """The score of all rows, if they are even."""
        return self._same

    @property
    def even(self) -> bool:
        """Whether all rows have the same score. It stays the same for all when it is normalized."""
        return self._column is None

    def of(self, rows: Ints) -> Ints:
        return np.full(len(rows), self._same, np.int64) if self._column is None else self._column[rows]

    def put(self, row: int, score: int, size: int) -> None:
        if self._column is None:
            if score == self._same:
                return
            self._column = np.full(size, self._same, np.int64)
        self._column[row] = score


class EvenScores:
    """What even scores become when they are normalized. No decision needs that, but users see the total.

    It is kept by plugin and score, because computing it takes longer than all else about a new shape.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], int] = {}

    def weighted(self, raw: RawScores, state: CycleState, pod: PodInfo, cluster: ClusterState) -> int:
        slot, key = raw.slot, (raw.slot.name, raw.same)
        score = self._known.get(key)
        if score is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            # The result is the same for all nodes, so one is enough.
            one = cluster.some_nodes(np.zeros(1, np.int64))
            score = int(np.max(final_scores(slot, state, pod, np.array([raw.same]), one, 1)))
            self._known[key] = score
        return score * slot.weight
