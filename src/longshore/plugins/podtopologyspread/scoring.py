"""How crowded a node's domains are already, over all soft constraints of a pod."""

import math
from collections.abc import Sequence

import numpy as np

from longshore.cluster import Nodes
from longshore.cluster.arrays import Bools, Floats, Ints
from longshore.framework import MAX_SCORE
from longshore.plugins.podtopologyspread.constraints import HOSTNAME
from longshore.plugins.podtopologyspread.counts import Spread


class Scoring:
    """What the nodes that passed have in common.

    A key with many domains has few pods in each, so the counts of a domain weigh more the more domains there
    are. `ignored` nodes lack a key that they should have; None if there are none.
    """

    def __init__(self, spreads: Sequence[Spread], nodes: Nodes, *, all_keys: bool) -> None:
        self.ignored: Bools | None = None
        rows = nodes.rows
        if all_keys:
            for spread in spreads:
                if not spread.domains.complete:
                    lacking = spread.domains.lacking(rows)
                    self.ignored = lacking if self.ignored is None else self.ignored | lacking
        self._weighted = [(s, np.float64(math.log(self._domains(s, nodes) + 2))) for s in spreads]

    def score(self, nodes: Nodes) -> Ints:
        """The higher, the more crowded."""
        total: Floats | None = None
        for spread, weight in self._weighted:
            crowd = _crowd(spread, weight, nodes)
            total = crowd if total is None else total + crowd
        if total is None:
            raise ValueError("no constraint to score by")
        if self.ignored is not None:
            total[self.ignored] = 0
        # Rounded half up: they are not negative, and none is so close to 0.5 that adding it would be inexact.
        return (total + 0.5).astype(np.int64)

    def _domains(self, spread: Spread, nodes: Nodes) -> int:
        """Among the nodes that passed. Those without the key, if not ignored, are in one of their own."""
        if spread.constraint.topology_key == HOSTNAME and self.ignored is None:
            return len(nodes.rows) if isinstance(nodes.rows, np.ndarray) else len(nodes)
        ids = spread.domains.ids[nodes.rows]
        if self.ignored is not None:
            ids = ids[~self.ignored]
        if spread.constraint.topology_key == HOSTNAME:
            return len(ids)
        return int(np.count_nonzero(np.bincount(ids)))


def normalized(scores: Ints, ignored: Bools | None) -> Ints:
    """The most crowded nodes get least; 0 for the ignored ones."""
    counted = scores if ignored is None else scores[~ignored]
    if not len(counted):
        return np.zeros_like(scores)
    lowest, highest = int(counted.min()), int(counted.max())
    result: Ints
    if highest:
        result = (highest + lowest - scores) * MAX_SCORE // highest
    else:
        result = np.full_like(scores, MAX_SCORE)
    if ignored is not None:
        result[ignored] = 0
    return result


def _crowd(spread: Spread, weight: np.float64, nodes: Nodes) -> Floats:
    """The part of one constraint; nothing where its key is absent."""
    domains, cluster = spread.domains, nodes.cluster
    tolerated = spread.constraint.max_skew - 1
    if spread.constraint.topology_key != HOSTNAME:
        by_domain: Floats = spread.sums(cluster) * weight + tolerated
        by_domain[-1] = 0
        return domains.at(by_domain, nodes.rows)
    # The node is what counts here, whatever its label says and whichever nodes count otherwise.
    by_row = spread.by_row(cluster)
    crowd: Floats = np.zeros(len(domains.ids))[nodes.rows] if by_row is None else by_row[nodes.rows] * weight
    crowd += tolerated
    if not domains.complete:
        crowd[domains.lacking(nodes.rows)] = 0
    return crowd
