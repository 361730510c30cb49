"""Common ways to scale scores to the range from 0 to MAX_SCORE."""

import numpy as np

from longshore.cluster.arrays import Ints
from longshore.framework.points import MAX_SCORE


def by_largest(scores: Ints, *, reverse: bool = False) -> Ints:
    """Scale the scores so that the largest becomes MAX_SCORE, or with `reverse` so that it becomes 0."""
    largest = int(scores.max(initial=0))
    if largest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    shares: Ints = scores * MAX_SCORE // largest
    return MAX_SCORE - shares if reverse else shares
