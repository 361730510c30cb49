"""Common ways to bring scores into the range from 0 to MAX_SCORE."""

import numpy as np

from longshore.cluster.arrays import Ints
from longshore.framework.points import MAX_SCORE


def by_largest(scores: Ints, *, reverse: bool = False) -> Ints:
    """The largest becomes MAX_SCORE and the others their share of it; reversed, the smallest is the best."""
    largest = int(scores.max(initial=0))
    if largest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    shares: Ints = scores * MAX_SCORE // largest
    return MAX_SCORE - shares if reverse else shares
