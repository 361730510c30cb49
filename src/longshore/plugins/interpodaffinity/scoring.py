"""The weights of what is preferred, by domain: what the pod says of those on the nodes, and they of it."""

from collections.abc import Sequence

import numpy as np

from longshore.cluster import Nodes
from longshore.cluster.arrays import Floats, Ints
from longshore.cluster.domains import Domains
from longshore.framework import MAX_SCORE
from longshore.plugins.interpodaffinity.terms import Sums

# Domains, how many pods there are on each row, and what one of them weighs.
Weighted = tuple[Domains, Ints, int]


def preferences(parts: Sequence[Weighted]) -> Sums | None:
    """The weights of all pods in each domain; None if no pod is in any."""
    sums = Sums.of((domains, by_row * weight) for domains, by_row, weight in parts)
    # Weights may cancel each other out: that is not the same as none at all.
    return sums if sums or any(domains.sums(by_row).any() for domains, by_row, _ in parts) else None


def score(sums: Sums, nodes: Nodes) -> Ints:
    total: Ints | None = None
    for domains, weights in sums.values():
        part = domains.at(weights, nodes.rows)
        total = part if total is None else total + part
    if total is None:
        raise ValueError("no term to score by")
    return total


def normalized(scores: Ints) -> Ints:
    """From the lowest, which gets 0, to the highest; all 0 if they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if lowest == highest:
        return np.zeros_like(scores)
    shares: Floats = (scores - lowest) / (highest - lowest) * MAX_SCORE
    return shares.astype(np.int64)
