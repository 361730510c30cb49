"""Scores by how many matching pods a node's domains already have, over all soft constraints of a pod."""

import math
from collections.abc import Sequence

import numpy as np

from longshore.cluster import Nodes
from longshore.cluster.arrays import Bools, Floats, Ints
from longshore.framework import MAX_SCORE
from longshore.plugins.podtopologyspread.constraints import HOSTNAME
from longshore.plugins.podtopologyspread.counts import Spread


class Scoring:
    """The weights of the constraints for the feasible nodes.

    A key with many domains has few pods in each, so the counts weigh more the more domains there are.
    `ignored` nodes lack a required key; None if there are none.
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
        """Return the scores before normalization. The more matching pods, the higher."""
        total: Floats | None = None
        for spread, weight in self._weighted:
            part = _part(spread, weight, nodes)
            total = part if total is None else total + part
        if total is None:
            raise ValueError("no constraint to score by")
        if self.ignored is not None:
            total[self.ignored] = 0
        # Rounded half up: the sums are not negative, and none is so close to 0.5 that adding 0.5 is inexact.
        return (total + 0.5).astype(np.int64)

    def _domains(self, spread: Spread, nodes: Nodes) -> int:
        """Return the number of domains of the feasible nodes. Those without the key count as one domain."""
        if spread.constraint.topology_key == HOSTNAME and self.ignored is None:
            return len(nodes.rows) if isinstance(nodes.rows, np.ndarray) else len(nodes)
        ids = spread.domains.ids[nodes.rows]
        if self.ignored is not None:
            ids = ids[~self.ignored]
        if spread.constraint.topology_key == HOSTNAME:
            return len(ids)
        return int(np.count_nonzero(np.bincount(ids)))


def normalized(scores: Ints, ignored: Bools | None) -> Ints:
    """Normalize the scores: nodes with the most matching pods get the lowest score, ignored ones get 0."""
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


def _part(spread: Spread, weight: np.float64, nodes: Nodes) -> Floats:
    """Return what one constraint adds to the scores; 0 where its key is absent."""
    domains, cluster = spread.domains, nodes.cluster
    tolerated = spread.constraint.max_skew - 1
    if spread.constraint.topology_key != HOSTNAME:
        by_domain: Floats = spread.sums(cluster) * weight + tolerated
        by_domain[-1] = 0
        return domains.at(by_domain, nodes.rows)
    # Here each node is a domain, whatever its label is and whichever nodes count otherwise.
    by_row = spread.by_row(cluster)
    part: Floats = np.zeros(len(domains.ids))[nodes.rows] if by_row is None else by_row[nodes.rows] * weight
    part += tolerated
    if not domains.complete:
        part[domains.lacking(nodes.rows)] = 0
    return part
