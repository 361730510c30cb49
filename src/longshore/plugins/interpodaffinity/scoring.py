"""The weights of preferred terms by domain, both of the incoming pod and of the pods on the nodes."""

from collections.abc import Sequence

import numpy as np

from longshore.cluster import Nodes
from longshore.cluster.arrays import Floats, Ints
from longshore.cluster.domains import Domains
from longshore.framework import MAX_SCORE
from longshore.plugins.interpodaffinity.terms import Sums

# Domains, the number of pods on each row, and the weight of one pod.
Weighted = tuple[Domains, Ints, int]


def preferences(parts: Sequence[Weighted]) -> Sums | None:
    """Return the total weight in each domain, or None if no domain has such a pod."""
    sums = Sums.of((domains, by_row * weight) for domains, by_row, weight in parts)
    # Weights may cancel each other out, which is not the same as no pods.
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
    """Scale the scores so that the lowest is 0 and the highest is MAX_SCORE; all are 0 if they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if lowest == highest:
        return np.zeros_like(scores)
    shares: Floats = (scores - lowest) / (highest - lowest) * MAX_SCORE
    return shares.astype(np.int64)
